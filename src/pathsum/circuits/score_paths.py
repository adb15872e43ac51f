"""What a head's attention scores are made of: a sum over pairs of paths, one to the query and one to the key.

With the patterns and norm scales of the layers below frozen, what a layer reads is a sum over paths, and a score, being
bilinear in it, one over pairs of paths (AMF "path expansion of attention scores QK circuit"; docs/framework.md §2.3).
No path is read off the residual stream. Position is a term of its own: a bias added to scores, or one more path on both
sides.

Softmax sees a query's scores up to a constant, so a pair is judged by a contrast: weights of query × key whose rows add
up to 0 over the keys that the query sees. Contrasts are linear: what pairs are worth adds up, and no pair's scores are
ever formed.
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
    """What does each path bring to what ``layer`` reads? s_l A^{h_n} ⋯ A^{h_1} ⊗ W_OV^{h_n} ⋯ W_OV^{h_1} W_E, applied
    to the tokens (AMF "path expansion trick"); ``()`` is the direct path.

    ``patterns`` and ``scales`` may be those of all layers. Costs order · batch · pos · (pos² + d_model · d_head) for
    each path. ValueError where a path goes through ``layer`` or beyond, or scales are missing.
    """
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
    """Are the pairs of paths all there is? Every pair's scores and position's bias, added up (AMF "path expansion of
    attention scores QK circuit").

    Equals the model's scores, in nats, at keys up to the query; later ones mean nothing. ``queries`` have 1/√d_head in
    them, as W_QK. Costs pairs · batch · pos² · d_head.
    """
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
    """What is each pair of paths worth under a contrast? Σ_{q,k} w(q, k) · query_q · key_k, in the contrast's unit.

    Adds up over pairs to the contrast of their scores. Costs batch · pos · d_head · keys · (pos + queries).
    """
    return torch.einsum("abqd,cbqd->acb", queries, contrast @ keys)


def preference_contrast(block: int) -> Float[Tensor, "query key"]:
    """By how many nats is the token after the earlier occurrence favoured? On BOS and a block twice, mean over the
    second copy's queries p of the score at p − block + 1 minus its mean over the keys up to p (AMF "how induction heads
    work").

    0 for scores that look for nothing. Costs pos².
    """
    pos = 1 + 2 * block
    n_keys = torch.arange(1.0, pos + 1).unsqueeze(-1)
    favoured = torch.diag(torch.ones(pos + 1 - block), 1 - block)[:pos, :pos] - (1 / n_keys).expand(-1, pos).tril()
    return torch.where(n_keys > block + 1, favoured / block, 0.0)


def variance_contrast(scores: Float[Tensor, "batch query key"], first: int) -> Float[Tensor, "batch query key"]:
    """How much of what softmax sees is a term's? cov(term, scores) / var(scores) over each query's keys, pooled over
    the queries from ``first`` on, of each window.

    Shares: terms that add up to ``scores`` add up to 1, and one against the rest has a negative share. 0 where scores
    are constant. Costs batch · pos².
    """
    seen = torch.ones_like(scores).tril()
    mean = (scores * seen).sum(-1, keepdim=True) / seen.sum(-1, keepdim=True)
    centred = (scores - mean) * seen
    centred[:, :first] = 0
    variance = centred.square().sum((-2, -1), keepdim=True)
    return centred / variance.clamp(min=torch.finfo(variance.dtype).tiny)


def by_distance(bias: Float[Tensor, "distance"]) -> Float[Tensor, "query key"]:
    """What does a bias by distance add to each score? b[query − key], nats; b[0] at later keys. Costs pos²."""
    place = torch.arange(len(bias), device=bias.device)
    return bias[(place[:, None] - place).clamp(min=0)]
