"""Fold the norms into the weights: first the gain, then the centering (docs/framework.md §1.4).

Both change the matrices that read the residual stream. Afterwards a norm only multiplies each position by a scale.
Position vectors that are added after a norm must be multiplied by the unfolded matrices.

    folded = centre(fold_gains(weights, gains))   # for LayerNorm; for RMSNorm, leave out centre
"""

from collections.abc import Callable, Sequence

from jaxtyping import Float
from torch import Tensor

from pathsum.core.weights import Head, Weights

Read = Callable[[Float[Tensor, "rows d_model"]], Float[Tensor, "rows d_model"]]


def fold_gains(weights: Weights, gains: Sequence[Float[Tensor, "d_model"]]) -> Weights:
    """Multiply every matrix that reads the residual stream by the gain g of the preceding norm, W · diag(g).

    ``gains`` holds one gain per layer, then that of the final norm. ValueError for another number of gains."""
    if len(gains) != len(weights.layers) + 1:
        raise ValueError(
            f"expected {len(weights.layers) + 1} gains, one per layer and one of the final norm, got {len(gains)}; for "
            "a norm without a gain, pass a vector of ones"
        )
    return _reading(weights, [gain.mul for gain in gains])


def centre(weights: Weights) -> Weights:
    """Center every matrix that reads the residual stream, W · (I − 1 1ᵀ / d_model). Call ``fold_gains`` first: the two
    do not commute."""
    return _reading(weights, [lambda W: W - W.mean(-1, keepdim=True)] * (len(weights.layers) + 1))


def _reading(weights: Weights, change: Sequence[Read]) -> Weights:
    """Apply ``change`` to the matrices that read the residual stream: one function per layer, then one for W_U."""
    layers = tuple(
        tuple(Head(read(h.W_Q), read(h.W_K), read(h.W_V), h.W_O) for h in heads)
        for heads, read in zip(weights.layers, change[:-1], strict=True)
    )
    return Weights(weights.W_E, change[-1](weights.W_U), layers)
