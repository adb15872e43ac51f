"""Norms of the parts of the residual stream."""

from pathsum.records.registry import record


@record(
    "balance",
    "norm of each part of the residual stream, and its share of the stream that a layer reads",
    "Σ ‖part‖² / Σ ‖x‖²; Σ ⟨part, x⟩ / Σ ‖x‖²",
    "circuits/balance.py",
)
class BalanceRow:
    """The norm of one part of the residual stream, and its share of the stream x that a layer or W_U reads, on
    held-out windows (docs/framework.md §7.3)."""

    reader: int  # layer that reads the stream; n_layers stands for the unembedding
    part: str  # embedding, all writes of a layer (L0) or of a head (L0H1)
    norm: float  # root mean square over positions of ‖part‖, before the normalization of the reader
    power_share: float  # Σ ‖s part‖² / Σ ‖s x‖², with s the norm scale of the reader
    projection_share: float  # Σ s² ⟨part, x⟩ / Σ ‖s x‖²; embedding and layers add up to 1
