"""Attention by position, whatever the tokens.

Position 0 holds the beginning-of-sequence token, an attention sink: it is a key only for ``bos``.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

Pattern = Float[Tensor, "batch head query key"]


def attention_by_distance(pattern: Pattern) -> Float[Tensor, "head distance"]:
    """Average A[i, i − distance] for each head and distance, docs/framework.md §3.13.

    Entry d is distance d = 0 … pos − 2, over queries d + 1 …, without key 0. Attention, 0..1; the entries need not sum
    to 1, since each is a mean over other queries. Costs batch · head · pos². ValueError under three positions.
    """
    _check(pattern)
    tokens = pattern[..., 1:, 1:]
    means = [tokens.diagonal(-distance, -2, -1).mean((0, -1)) for distance in range(tokens.shape[-1])]
    return torch.stack(means, -1)


def previous_token(pattern: Pattern) -> Float[Tensor, "head"]:
    """Average A[i, i − 1], each head's attention to the previous token, docs/framework.md §3.13.

    Over queries from 2: the previous token of query 1 is the beginning of the sequence. 0..1. Costs batch · head · pos.
    ValueError under three positions.
    """
    _check(pattern)
    return pattern[..., 1:, 1:].diagonal(-1, -2, -1).mean((0, -1))


def bos(pattern: Pattern) -> Float[Tensor, "head"]:
    """Average A[i, 0], each head's attention to the beginning of the sequence, over queries from 1.

    Query 0 has no other key. 0..1. Costs batch · head · pos. Raises ValueError under three positions.
    """
    _check(pattern)
    return pattern[..., 1:, 0].mean((0, -1))


def _check(pattern: Tensor) -> None:
    queries, keys = pattern.shape[-2:]
    if queries != keys or keys < 3:
        raise ValueError(f"expected a square pattern of at least 3 positions, got {queries} queries × {keys} keys")
