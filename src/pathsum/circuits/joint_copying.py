"""Find heads with similar attention patterns, and add their OV (output-value) matrices (docs/framework.md §3.7)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.precision import finite
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head


def pattern_similarity(pattern: Float[Tensor, "batch head query key"]) -> Float[Tensor, "head head"]:
    """Return the cosine of the attention patterns of every two heads, over all windows. Key 0, the attention sink, is
    left out.

    0..1, with 1 on the diagonal. A head that attends only to key 0 has cosine 0 with every other head.
    ValueError for NaN or infinity."""
    flat = finite(pattern, "patterns")[..., 1:].transpose(0, 1).flatten(1)
    inner = flat @ flat.mT
    length = inner.diagonal().sqrt()
    size = length[:, None] * length
    cosine = torch.where(size > 0, inner / size.clamp(min=torch.finfo(size.dtype).tiny), 0)
    return cosine.fill_diagonal_(1)


def similar_groups(similarity: Float[Tensor, "head head"], least: float) -> list[tuple[int, ...]]:
    """Group heads by complete linkage: every two heads of a group have a ``similarity`` of at least ``least``.

    The two most similar groups are joined first. Each head is in exactly one group. Groups are ordered by their first
    head. ValueError for NaN."""
    finite(similarity, "similarities")
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


def joint_OV(heads: Sequence[Head]) -> LowRank:
    """Return the sum Σ_h W_OV^h as one low-rank product. ValueError without heads."""
    if not heads:
        raise ValueError("expected at least one head, got none")
    return LowRank(torch.cat([h.W_O for h in heads], 1), torch.cat([h.W_V for h in heads], 0))
