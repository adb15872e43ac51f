"""Path expansion of attention scores: a sum over pairs of paths, one to the query and one to the key
(AMF "path expansion of attention scores QK circuit", docs/framework.md §2.3).

Position is a separate term: a bias added to scores, or one more path on both sides. A pair is judged by a contrast:
weights of query × key whose rows sum to 0 over the keys up to the query (docs/framework.md §2.4). Contrasts are linear,
so they add up over pairs, and the scores of a pair are never formed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.paths import Path, Patterns, Scales, path_pattern
from pathsum.core.weights import Weights


def stream_paths(
    weights: Weights,
    layer: int,
    paths: Sequence[Path],
    tokens: Int[Tensor, "batch pos"],
    patterns: Patterns,
    scales: Scales,
) -> Float[Tensor, "path batch pos d_model"]:
    """Return each path's contribution to the normalized stream that ``layer`` reads: (s_l A^{h_n} s_{l_n} ⋯ A^{h_1}
    s_{l_1}) ⊗ (W_OV^{h_n} ⋯ W_OV^{h_1} W_E), applied to the tokens.

    ``patterns`` and ``scales`` may be those of all layers. Costs order · batch · pos · (pos² + d_model · d_head) for
    each path. ValueError where a path goes through ``layer`` or beyond, or scales are missing."""
    if beyond := [path for path in paths if path and path[-1][0] >= layer]:
        raise ValueError(f"expected paths through layers below {layer}, got {beyond[0]}; it reads those alone")
    if len(scales) <= layer:
        raise ValueError(f"expected a scale for each layer up to {layer}, got {len(scales)}; give ones without a norm")
    brought = []
    for path in paths:
        moved = path_pattern(path, patterns, scales[: layer + 1]) @ weights.W_E.mT[tokens]
        for at, head in path:
            W_OV = weights.layers[at][head].W_OV
            moved = moved @ W_OV.right.mT @ W_OV.left.mT
        brought.append(moved)
    return torch.stack(brought)


def score_sum(
    queries: Float[Tensor, "path batch pos d_head"],
    keys: Float[Tensor, "path_ batch pos d_head"],
    bias: Float[Tensor, "distance"],
) -> Float[Tensor, "batch query key"]:
    """Sum the scores of all pairs of paths and the position bias, which equals the model's scores in nats at keys up to
    the query. ``queries`` include 1/√d_head, as W_QK does. Costs pairs · batch · pos² · d_head."""
    total = by_distance(bias).expand(queries.shape[1], -1, -1)
    for query in queries:
        for key in keys:
            total = total + query @ key.mT
    return total


def contrasted(
    queries: Float[Tensor, "path batch pos d_head"],
    keys: Float[Tensor, "path_ batch pos d_head"],
    contrast: Float[Tensor, "batch query key"],
) -> Float[Tensor, "path path_ batch"]:
    """Compute the contrast of each pair of paths, Σ_{q,k} w(q, k) · query_q · key_k, in the unit of the contrast. Costs
    batch · pos · d_head · keys · (pos + queries)."""
    return torch.einsum("abqd,cbqd->acb", queries, contrast @ keys)


def preference_contrast(block: int) -> Float[Tensor, "query key"]:
    """Return the contrast that prefers the token after the earlier occurrence (docs/framework.md §2.4): on BOS and a
    block twice, the mean over queries p of the second copy of the score at p − block + 1 minus its mean over the keys
    up to p. Nats; 0 for constant scores. Costs pos²."""
    pos = 1 + 2 * block
    n_keys = torch.arange(1.0, pos + 1).unsqueeze(-1)
    favoured = torch.diag(torch.ones(pos + 1 - block), 1 - block)[:pos, :pos] - (1 / n_keys).expand(-1, pos).tril()
    return torch.where(n_keys > block + 1, favoured / block, 0.0)


def variance_contrast(scores: Float[Tensor, "batch query key"], first: int) -> Float[Tensor, "batch query key"]:
    """Return the contrast that gives the variance share of a term in each window (docs/framework.md §2.4): cov(term,
    scores) / var(scores) over the keys of each query, pooled over the queries from ``first`` on. Shares of terms that
    sum to ``scores`` sum to 1; 0 where scores are constant. Costs batch · pos²."""
    seen = torch.ones_like(scores).tril()
    mean = (scores * seen).sum(-1, keepdim=True) / seen.sum(-1, keepdim=True)
    centred = (scores - mean) * seen
    centred[:, :first] = 0
    variance = centred.square().sum((-2, -1), keepdim=True)
    return centred / variance.clamp(min=torch.finfo(variance.dtype).tiny)


def by_distance(bias: Float[Tensor, "distance"]) -> Float[Tensor, "query key"]:
    """Arrange a bias by distance as query × key: b[query − key], nats; b[0] at later keys. Costs pos²."""
    place = torch.arange(len(bias), device=bias.device)
    return bias[(place[:, None] - place).clamp(min=0)]
