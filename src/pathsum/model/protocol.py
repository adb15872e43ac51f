"""The one interface through which analyses read a model, whoever trained it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from pathsum.core.weights import Weights
from pathsum.model.transformer import Trace


@runtime_checkable
class AttentionOnly(Protocol):
    """An attention-only model: its frozen weights, and a trace of a run."""

    def trace(self, tokens: Int[Tensor, "batch pos"]) -> Trace:
        """Return logits with every attention pattern, head output and norm scale."""

    def weights(self) -> Weights:
        """Return the embedding, the unembedding and every head."""

    def normalise(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Normalise a residual stream. Return what a layer reads, and the scale per position."""
