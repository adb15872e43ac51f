"""Copying by heads of one pattern together."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record("joint_copying", "copying of heads of one pattern", "W_U Σ_h W_OV^h W_E", "circuits/joint_copying.py")
@dataclass(frozen=True)
class JointCopyingRow:
    """Heads of one layer with alike patterns, their OV circuits added up."""

    layer: int
    heads: str  # numbers joined by spaces
    similarity: float  # smallest cosine of two of their patterns, 0..1
    positivity: float  # Σλ / Σ|λ| of the sum
    top1: float  # share of tokens whose own logit the sum raises most
    top5: float
    best_top1: float  # of the best of them alone
    chance_top1: float | None  # mean over other sets of as many heads of the layer; None where there is no other
