"""Directions that heads read, write and delete."""

from pathsum.records.registry import record


@record(
    "overlaps",
    "overlap of the subspaces that heads write and read",
    "‖P W_OV^early‖² / ‖W_OV^early‖², P the projection on what is read",
    "circuits/subspaces.py",
)
class OverlapRow:
    """The overlap of the subspace that an early head writes with the subspace that a late head reads."""

    kind: str  # Q, K or V: the late head's reader
    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    share: float  # of the early head's writes, in the subspace that the late head reads, 0..1
    chance: float  # mean under random rotations
    spread: float  # standard deviation under random rotations


@record("bandwidth", "directions used", "(Σ s²)² / Σ s⁴, s the singular values", "circuits/subspaces.py")
class BandwidthRow:
    """The effective rank of a matrix."""

    part: str  # W_E, W_U, W_OV or W_QK
    layer: int | None  # None for W_E and W_U
    head: int | None
    effective_rank: float  # participation ratio of the singular values, 1..rank
    rank: int  # the maximum


@record(
    "deleting",
    "cancellation of earlier writes, and its alignment with them",
    "−⟨o, y⟩ / ⟨y, y⟩; tr(W_OV C) / √(tr(W_OV C W_OVᵀ) tr C), C the covariance of what was written",
    "circuits/deleting.py",
)
class DeletingRow:
    """A head's response to the writes of earlier layers; heads of the first layer have no row."""

    layer: int
    head: int
    alignment: float  # −1: it writes the opposite of what it reads of them; 1: the same
    spread: float  # standard deviation of alignment under random rotations, whose mean is 0
    removed: float  # share of their writes that its output cancels at the same position, on held-out text
