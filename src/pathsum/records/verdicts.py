"""The verdict on each claim."""

from __future__ import annotations

from dataclasses import dataclass, field

from pathsum.records.registry import record


@record(
    "claims",
    "verdict of every claim",
    "all models pass, or some; median over models",
    "claims/judging.py",
    stored="data/claims.json",
    stage="verify",
)
@dataclass(frozen=True)
class ClaimResult:
    id: str
    claim: str  # one sentence, the paper's claim in our words
    section: str  # where the paper makes it
    measure: str  # what was measured, in words
    threshold: str  # when it counts as reproduced
    value: float | None
    values: dict[str, float | None]  # a model each
    verdict: str  # reproduced | partly | not | not testable here
    detail: str  # one sentence on the result, numbers included
    short: list[str] = field(default_factory=list)  # models that miss the threshold
