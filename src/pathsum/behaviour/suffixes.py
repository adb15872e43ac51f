"""Preference for the follower of the longer match (docs/framework.md §5.12; after ICL "defining induction heads").

Windows come in both orders: in the first half the first occurrence is the longer match, in the second half the second
occurrence. Means are over both orders, which balances distance and follower.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def last_attention(
    pattern: Float[Tensor, "batch head query key"], keys: Int[Tensor, "batch n"]
) -> Float[Tensor, "head batch n"]:
    """Return the last query's attention to ``keys``. 0..1; 1/pos for uniform attention."""
    rows = torch.arange(len(keys), device=keys.device)[:, None]
    return pattern[rows, :, -1, keys].permute(2, 0, 1)


def longer_and_shorter(values: Float[Tensor, "*shape batch k"]) -> Float[Tensor, "*shape n k"]:
    """Average ``values`` of the two occurrences over both orders: for each trial, the longer and the shorter match.

    ValueError if windows do not come in pairs.
    """
    if values.shape[-2] % 2 or values.shape[-1] != 2:
        raise ValueError(f"expected two numbers for each window, in two halves, got shape {tuple(values.shape)}")
    first, second = values.chunk(2, -2)
    return (first + second.flip(-1)) / 2
