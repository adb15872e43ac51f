"""Patterns without their attention sink.

Softmax weights sum to 1. If a head has nothing to move, its attention goes to a key whose value has little effect,
mostly the beginning-of-sequence token (AMF "induction heads"; named attention sink by Xiao et al. 2023).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

LEAST = 1e-6  # remaining attention that is scaled up; a row with less stays unchanged


def silenced(pattern: Float[Tensor, "*batch query key"], key: int) -> Float[Tensor, "*batch query key"]:
    """Remove the attention of later queries to ``key``. Their rows then sum to 1 − A[q, key]. Queries up to ``key``
    stay unchanged. Costs batch · pos²."""
    changed = pattern.clone()
    changed[..., key + 1 :, key] = 0
    return changed


def forbidden(pattern: Float[Tensor, "*batch query key"], key: int) -> Float[Tensor, "*batch query key"]:
    """Remove the attention of later queries to ``key`` and scale the rest of each row to sum to 1, as in a softmax
    without that key. Queries up to ``key`` stay unchanged. Costs batch · pos²."""
    rest = silenced(pattern, key)
    left = rest.sum(-1, keepdim=True)
    return torch.where(left > LEAST, rest / left.clamp(min=LEAST), pattern)


def uniform_share(pos: int) -> float:
    """Return the share of attention on the first token under uniform causal attention: the mean of 1/(i + 1) over
    queries 1 … pos − 1. 0..1. Costs pos."""
    return (1 / torch.arange(2.0, pos + 1)).mean().item()
