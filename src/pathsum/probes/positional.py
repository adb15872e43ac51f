"""Where heads look, whatever the tokens.

Position 0 holds the beginning-of-sequence token, on which heads rest that have nothing to do: it is a key only for
``bos``.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

Pattern = Float[Tensor, "batch head query key"]


def attention_by_distance(pattern: Pattern) -> Float[Tensor, "head distance"]:
    """How far back does each head look? Mean of A[i, i − distance], docs/framework.md §3.13.

    Entry d is distance d = 0 … pos − 2, over queries d + 1 …, for key 0 is left out. Attention, 0..1; the entries need
    not sum to 1, since each is a mean over other queries. Costs batch · head · pos². ValueError under three positions.
    """
    _check(pattern)
    tokens = pattern[..., 1:, 1:]
    means = [tokens.diagonal(-distance, -2, -1).mean((0, -1)) for distance in range(tokens.shape[-1])]
    return torch.stack(means, -1)


def previous_token(pattern: Pattern) -> Float[Tensor, "head"]:
    """How much does each head look at the token before? Mean of A[i, i − 1], docs/framework.md §3.13.

    Over queries from 2: query 1's previous token is the beginning of the sequence. 0..1. Costs batch · head · pos.
    ValueError under three positions.
    """
    _check(pattern)
    return pattern[..., 1:, 1:].diagonal(-1, -2, -1).mean((0, -1))


def bos(pattern: Pattern) -> Float[Tensor, "head"]:
    """How much does each head rest on the beginning of the sequence? Mean of A[i, 0] over queries from 1, for query 0
    has no choice. 0..1. Costs batch · head · pos. ValueError under three positions."""
    _check(pattern)
    return pattern[..., 1:, 0].mean((0, -1))


def _check(pattern: Tensor) -> None:
    queries, keys = pattern.shape[-2:]
    if queries != keys or keys < 3:
        raise ValueError(f"expected a square pattern of at least 3 positions, got {queries} queries × {keys} keys")
