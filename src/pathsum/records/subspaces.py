"""Directions that heads read, write and delete."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "overlaps",
    "where heads read of what others write",
    "‖P W_OV^early‖² / ‖W_OV^early‖², P the projection on what is read",
    "circuits/subspaces.py",
)
@dataclass(frozen=True)
class OverlapRow:
    kind: str  # Q, K or V: which of the late head's readers
    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    share: float  # of what the early head writes, in the subspace that the late one reads, 0..1
    chance: float  # mean under random rotations
    spread: float  # standard deviation under random rotations


@record("bandwidth", "directions used", "(Σ s²)² / Σ s⁴, s the singular values", "circuits/subspaces.py")
@dataclass(frozen=True)
class BandwidthRow:
    part: str  # W_E, W_U, W_OV or W_QK
    layer: int | None  # None for W_E and W_U
    head: int | None
    effective_rank: float  # participation ratio of the singular values, 1..rank
    rank: int  # the most that it could be


@record(
    "deleting",
    "writing against what was written, and how far the two lie in one line",
    "−⟨o, y⟩ / ⟨y, y⟩; tr(W_OV C) / √(tr(W_OV C W_OVᵀ) tr C), C the covariance of what was written",
    "circuits/deleting.py",
)
@dataclass(frozen=True)
class DeletingRow:
    """A head's response to the writes of earlier layers; heads of the first layer have no row."""

    layer: int
    head: int
    alignment: float  # −1 writes the opposite of what it reads of them, 1 the same
    spread: float  # of alignment under random rotations, about a mean of 0
    removed: float  # share of their writes that its output cancels at the same position, on held-out text
