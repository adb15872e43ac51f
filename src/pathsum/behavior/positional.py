"""Mean attention by position, regardless of the tokens. All means are over queries and windows.

Only ``bos`` includes attention to position 0, the beginning-of-sequence token (BOS).
"""

import torch
from jaxtyping import Float
from torch import Tensor

Pattern = Float[Tensor, "batch head query key"]


def attention_by_distance(pattern: Pattern) -> Float[Tensor, "head distance"]:
    """Return the mean of A[i, i − d] over queries i, for each head and each distance d (docs/framework.md §3.13).

    Entry d = 0 … pos − 2 is the mean over the queries i > d, so key 0 is left out. Each entry is in 0..1. Entries need
    not sum to 1, because they are means over different queries. Raises ValueError if ``pattern`` is not square or has
    fewer than three positions."""
    _check(pattern)
    tokens = pattern[..., 1:, 1:]
    means = [tokens.diagonal(-distance, -2, -1).mean((0, -1)) for distance in range(tokens.shape[-1])]
    return torch.stack(means, -1)


def previous_token(pattern: Pattern) -> Float[Tensor, "head"]:
    """Return each head's mean attention to the previous token, A[i, i − 1] over queries i ≥ 2 (docs/framework.md
    §3.13).

    The score is from 0 to 1. Query 1 is left out, because its previous token is BOS. Raises ValueError if ``pattern``
    is not square or has fewer than three positions.
    """
    _check(pattern)
    return pattern[..., 1:, 1:].diagonal(-1, -2, -1).mean((0, -1))


def bos(pattern: Pattern) -> Float[Tensor, "head"]:
    """Return each head's mean attention to BOS, A[i, 0] over queries i ≥ 1 (docs/framework.md §3.13).

    The score is from 0 to 1. Query 0 is left out, because it has no other key. Raises ValueError if ``pattern`` is not
    square or has fewer than three positions.
    """
    _check(pattern)
    return pattern[..., 1:, 0].mean((0, -1))


def _check(pattern: Tensor) -> None:
    queries, keys = pattern.shape[-2:]
    if queries != keys or keys < 3:
        raise ValueError(f"expected a square pattern of at least 3 positions, got {queries} queries × {keys} keys")
