"""Measure the preference for the follower of the longer of two matches (docs/framework.md §5.12)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def last_attention(
    pattern: Float[Tensor, "batch head query key"], keys: Int[Tensor, "batch n"]
) -> Float[Tensor, "head batch n"]:
    """Return the attention of the last query to ``keys``, for each head. 0..1; 1/pos under uniform attention."""
    rows = torch.arange(len(keys), device=keys.device)[:, None]
    return pattern[rows, :, -1, keys].permute(2, 0, 1)


def longer_and_shorter(values: Float[Tensor, "*shape batch k"]) -> Float[Tensor, "*shape n k"]:
    """Return the value of the longer and that of the shorter match in each of n trials, averaged over both orders.

    ``values`` has 2n windows and two occurrences. Trial i is window i, where the first occurrence is the longer match,
    and window n + i, where the second is. ValueError for an odd number of windows, or unless there are two occurrences.
    """
    if values.shape[-2] % 2 or values.shape[-1] != 2:
        raise ValueError(f"expected two values for each of 2n windows, got shape {tuple(values.shape)}")
    first, second = values.chunk(2, -2)
    return (first + second.flip(-1)) / 2
