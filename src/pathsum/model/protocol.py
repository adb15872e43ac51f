"""The interface through which analyses access a model, whether it was trained here or elsewhere."""

from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from pathsum.core.weights import Weights
from pathsum.model.transformer import Trace


@runtime_checkable
class AttentionOnly(Protocol):
    """An attention-only model that provides its weights, its norm and the trace of a run."""

    def trace(self, tokens: Int[Tensor, "batch pos"]) -> Trace:
        """Run the model on ``tokens``. Return the logits with all attention patterns, head outputs and norm scales."""

    def weights(self) -> Weights:
        """Return the embedding, the unembedding and the matrices of every head, with norms folded in."""

    def normalise(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the normalized residual stream, which a layer reads, and the norm scale at each position."""
