"""Subspaces that heads read and write, effective ranks, and deletion (docs/framework.md §3.15, §3.16)."""

from pathsum.records.registry import record


@record(
    "overlaps",
    "overlap of the subspaces that early heads write and late heads read",
    "‖P W_OV^early‖² / ‖W_OV^early‖², P the projection on the subspace that the late head reads",
    "circuits/subspaces.py",
)
class OverlapRow:
    """From weights: the share of an early head's ‖W_OV‖² in the subspace that a late head reads through Q, K or V."""

    kind: str  # reader of the late head: Q, K or V
    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    share: float  # ‖P W_OV^early‖² / ‖W_OV^early‖², 0..1
    chance: float  # mean of share under random rotations
    spread: float  # standard deviation of share under random rotations


@record("bandwidth", "effective ranks", "(Σ σ²)² / Σ σ⁴, σ the singular values", "circuits/subspaces.py")
class BandwidthRow:
    """The effective rank of one matrix: the participation ratio of its singular values. The means over tokens of W_E
    and W_U are subtracted first (docs/framework.md §3.15)."""

    part: str  # W_E, W_U, W_OV or W_QK
    layer: int | None  # None for W_E and W_U
    head: int | None
    effective_rank: float  # 1..rank
    rank: int  # largest possible value


@record(
    "deleting",
    "alignment of each head's write with earlier writes, and the share of earlier writes that it removes",
    "tr(W_OV C) / √(tr(W_OV C W_OVᵀ) tr C), C the covariance of earlier writes; −Σ ⟨o, y⟩ / Σ ⟨y, y⟩",
    "circuits/deleting.py",
)
class DeletingRow:
    """How far a head deletes what earlier layers wrote. Heads of the first layer have no row."""

    layer: int
    head: int
    alignment: float  # −1..1; −1: the head writes the opposite of the earlier write that it reads
    spread: float  # standard deviation of alignment under random rotations; the mean is 0
    removed: float  # share of earlier writes at the same position that the head's output cancels, on held-out text
