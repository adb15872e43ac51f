"""Heads that look at the same places act as one: their OV circuits add (AMF "copying: eigenvalue analysis").

A head that copies a part of the vocabulary looks like a poor copier alone; heads of one pattern are therefore judged
together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head


def pattern_similarity(pattern: Float[Tensor, "batch head query key"]) -> Float[Tensor, "head head"]:
    """Do two heads look at the same places? Cosine of their patterns over all windows, docs/framework.md §3.7.

    0..1, 1 on the diagonal. Key 0 is left out: it is the beginning of the sequence, on which heads rest that have
    nothing to do, and rest is no likeness. A head that looks nowhere else is like none. Costs batch · head² · pos².
    """
    flat = pattern[..., 1:].transpose(0, 1).flatten(1)
    inner = flat @ flat.mT
    length = inner.diagonal().sqrt()
    size = length[:, None] * length
    cosine = torch.where(size > 0, inner / size.clamp(min=torch.finfo(size.dtype).tiny), 0)
    return cosine.fill_diagonal_(1)


def alike(similarity: Float[Tensor, "head head"], least: float) -> list[tuple[int, ...]]:
    """Which heads go together? Groups in which every two heads are at least ``least`` similar.

    The most similar pair of groups is joined first, as long as its least similar heads allow it (complete linkage), so
    that no chain of half-likenesses makes a group. Each head is in one group; groups by their first head. Costs head³.
    """
    groups: list[tuple[int, ...]] = [(h,) for h in range(len(similarity))]
    while len(groups) > 1:
        pairs = [(a, b) for i, a in enumerate(groups) for b in groups[i + 1 :]]
        closeness = [min(similarity[h, g].item() for h in a for g in b) for a, b in pairs]
        best = max(range(len(pairs)), key=closeness.__getitem__)
        if closeness[best] < least:
            break
        a, b = pairs[best]
        groups = sorted([g for g in groups if g not in (a, b)] + [tuple(sorted(a + b))])
    return groups


def side_by_side(heads: Sequence[Head]) -> LowRank:
    """What do heads move that look at the same place? Σ_h W_OV^h as one thin product, for every function that takes a
    W_OV. ValueError without heads."""
    if not heads:
        raise ValueError("expected at least one head, got none")
    return LowRank(torch.cat([h.W_O for h in heads], 1), torch.cat([h.W_V for h in heads], 0))
