"""The verdict on each claim."""

from dataclasses import field

from pathsum.records.registry import record


@record(
    "claims",
    "verdict of every claim",
    "all models pass, some or none; median over models",
    "claims/judging.py",
    stored="data/claims.json",
    stage="verify",
)
class ClaimResult:
    """The verdict on a claim."""

    id: str
    claim: str  # one sentence
    section: str  # of the paper
    measure: str
    threshold: str
    value: float | None
    values: dict[str, float | None]  # by model
    verdict: str  # reproduced | partly | not | not testable here
    detail: str  # one sentence on the result, with numbers
    short: list[str] = field(default_factory=list)  # models that miss the threshold
