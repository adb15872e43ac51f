"""The verdict on each claim."""

from dataclasses import field

from pathsum.records.registry import record


@record(
    "claims",
    "verdict: all, some or no models pass; value: median over models",
    "claims/judging.py",
    stored="data/claims.json",
    stage="verify",
)
class ClaimResult:
    """Verdict on every claim. See docs/framework.md §10.7."""

    id: str
    claim: str  # the claim in one sentence
    section: str  # section of the paper
    measure: str
    threshold: str
    value: float | None  # median over models; None where nothing was measured
    values: dict[str, float | None]  # value of each judged model
    verdict: str  # reproduced | partly | not | no induction head here | not testable here
    detail: str  # the result in words and numbers
    short: list[str] = field(default_factory=list)  # models that miss the threshold
    notes: dict[str, str] = field(default_factory=dict)  # more on some of these, by model
    unsure: list[str] = field(default_factory=list)  # models in which a threshold lies within a 95 % interval
    absent: list[str] = field(default_factory=list)  # models without an induction head, where the claim needs one
