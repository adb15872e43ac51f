"""Norms of the parts of the residual stream."""

from pathsum.records.registry import record


@record(
    "balance",
    "norm of each part of the residual stream, and its share of what is read",
    "Σ ‖part‖² / Σ ‖x‖²; Σ ⟨part, x⟩ / Σ ‖x‖²",
    "circuits/balance.py",
)
class BalanceRow:
    """The norm of a part of the residual stream, and its share of what a layer reads, on held-out windows."""

    reader: int  # layer; n_layers is the unembedding
    part: str  # embedding, a layer (L0) or a head (L0H1)
    norm: float  # root mean square over positions, before the reader's norm
    power_share: float  # Σ ‖part‖² / Σ ‖what is read‖²
    projection_share: float  # Σ ⟨part, what is read⟩ / Σ ‖what is read‖²; embedding and layers add up to 1
