"""Remove the attention sink from attention patterns (docs/framework.md §5.15).

The weights of a softmax sum to 1, so a head with nothing to move attends to a key whose value has little effect,
usually the beginning-of-sequence token (BOS).
"""

import torch
from jaxtyping import Float
from torch import Tensor

LEAST = 1e-6  # a row stays unchanged if the attention that remains without the key is at most this


def silenced(pattern: Float[Tensor, "*batch query key"], key: int) -> Float[Tensor, "*batch query key"]:
    """Set A[q, ``key``] to 0 for every query q after ``key``, and leave the rest of its row as it is.

    The changed rows sum to 1 − A[q, key]. Queries up to ``key`` stay unchanged."""
    changed = pattern.clone()
    changed[..., key + 1 :, key] = 0
    return changed


def forbidden(pattern: Float[Tensor, "*batch query key"], key: int) -> Float[Tensor, "*batch query key"]:
    """Set A[q, ``key``] to 0 for every query q after ``key``, and scale the rest of its row to sum to 1.

    This is the pattern of a softmax without that key. Rows must sum to 1. Queries up to ``key`` stay unchanged, up to
    rounding, and so do rows whose other weights sum to at most LEAST (1e-6)."""
    rest = silenced(pattern, key)
    left = rest.sum(-1, keepdim=True)
    return torch.where(left > LEAST, rest / left.clamp(min=LEAST), pattern)


def uniform_share(pos: int) -> float:
    """Return the attention to the first token under uniform causal attention, in windows of ``pos`` positions.

    It is the mean of 1/(i + 1) over queries i = 1 … pos − 1; NaN for a single position."""
    return (1 / torch.arange(2.0, pos + 1)).mean().item()
