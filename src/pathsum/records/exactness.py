"""How closely the sum over all paths reproduces the logits and the attention scores of a model."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "exactness",
    "certificate of the path sums at every checkpoint, of logits and of scores",
    "max |Σ paths − logits| / max |logits|; max |Σ pairs of paths − log A| / max |log A|",
    "circuits/paths.py",
)
@dataclass(frozen=True)
class ExactnessRow:
    step: int
    tokens_seen: int
    max_relative_error: float  # |sum of paths − logits| / |logits|, largest, float64
    scores_max_relative_error: float | None  # likewise of log A over pairs of paths; None: no later layer, or no sum
