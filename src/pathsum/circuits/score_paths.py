"""Path expansion of attention scores: a sum over pairs of paths, one to the query and one to the key
(docs/framework.md §2.3).

A pair of paths is judged by a contrast: the weighted sum of its scores over query × key, with weights that sum to 0
over the keys up to each query (§2.4). Contrasts are linear, so those of all pairs add up to that of the scores, and the
scores of single pairs are never computed.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.paths import Path, Patterns, Scales, path_read
from pathsum.circuits.precision import scaled
from pathsum.core.weights import Weights


def stream_paths(
    weights: Weights,
    layer: int,
    paths: Sequence[Path],
    tokens: Int[Tensor, "batch pos"],
    patterns: Patterns,
    scales: Scales,
) -> Float[Tensor, "path batch pos d_model"]:
    """Return the contribution of each path to the normalized residual stream that ``layer`` reads.

    It is (s_l A^{h_n} s_{l_n} ⋯ A^{h_1} s_{l_1}) ⊗ (W_OV^{h_n} ⋯ W_OV^{h_1} W_E), applied to the tokens. The centering
    of a LayerNorm is not applied, because W_Q, W_K and W_V contain it. ``patterns`` and ``scales`` may include those of
    later layers. ValueError if a path goes through ``layer`` or a later layer, or if scales are missing. See
    docs/framework.md §2.3."""
    if beyond := [path for path in paths if path and path[-1][0] >= layer]:
        raise ValueError(f"expected paths through layers below {layer}, got {beyond[0]}; layer {layer} reads no others")
    if len(scales) <= layer:
        raise ValueError(f"expected a scale for each layer up to {layer}, got {len(scales)}; without a norm, pass ones")
    return torch.stack([path_read(weights, path, tokens, patterns, scales[: layer + 1]) for path in paths])


def score_sum(
    queries: Float[Tensor, "path batch pos d_head"],
    keys: Float[Tensor, "path_ batch pos d_head"],
    bias: Float[Tensor, "distance"],
) -> Float[Tensor, "batch query key"]:
    """Return the sum of the scores of all pairs of paths and of the position bias, in nats.

    At keys up to the query, it equals the model's attention scores if the paths add up to what the layer reads.
    ``queries`` include the factor 1/√d_head, as W_QK does. ``bias`` has one entry per distance 0 … pos − 1, zeros for a
    head without one. Keys are summed over paths before they are multiplied by queries."""
    every_key = keys.sum(0).mT
    return by_distance(bias) + torch.stack([query @ every_key for query in queries]).sum(0)


def contrasted(
    queries: Float[Tensor, "path batch pos d_head"],
    keys: Float[Tensor, "path_ batch pos d_head"],
    contrast: Float[Tensor, "batch query key"],
) -> Float[Tensor, "path path_ batch"]:
    """Return the contrast of each pair of paths, Σ_{q,k} w[q, k] · query_q · key_k with w = ``contrast``.

    In nats for ``preference_contrast``, and a share for ``variance_contrast``. See docs/framework.md §2.4."""
    return torch.einsum("abqd,cbqd->acb", queries, contrast @ keys)


def preference_contrast(block: int) -> Float[Tensor, "query key"]:
    """Return the weights w[q, k] that measure the preference for the token after the earlier occurrence of the current
    token.

    Windows are the beginning-of-sequence token (BOS) and a block given twice. The contrast is the mean, over the
    queries p of the second copy, of score[p, p − block + 1] − mean_{k ≤ p} score[p, k]. In nats; 0 for constant scores.
    See docs/framework.md §2.4."""
    pos = 1 + 2 * block
    n_keys = torch.arange(1.0, pos + 1).unsqueeze(-1)
    favoured = torch.diag(torch.ones(pos + 1 - block), 1 - block)[:pos, :pos] - (1 / n_keys).expand(-1, pos).tril()
    return torch.where(n_keys > block + 1, favoured / block, 0.0)


def variance_contrast(scores: Float[Tensor, "batch query key"], first: int) -> Float[Tensor, "batch query key"]:
    """Return the weights w[q, k] that give a term's share of the variance of ``scores``,
    cov(term, scores) / var(scores).

    Covariance and variance are taken over the keys of each query, and pooled over the queries of a window from
    ``first`` on. The shares of terms that add up to ``scores`` add up to 1. If the scores are constant, all shares are
    0. ValueError unless ``scores`` are finite, also at keys after the query, which get weight 0. See docs/framework.md
    §2.4."""
    scores, n = scaled(scores, "scores")
    seen = torch.ones_like(scores).tril()
    mean = (scores * seen).sum(-1, keepdim=True) / seen.sum(-1, keepdim=True)
    centred = (scores - mean) * seen
    centred[:, :first] = 0
    variance = centred.square().sum((-2, -1), keepdim=True)
    return centred / variance.clamp(min=torch.finfo(variance.dtype).tiny) / 2.0**n


def by_distance(bias: Float[Tensor, "distance"]) -> Float[Tensor, "query key"]:
    """Expand a distance bias b into a query × key table, in nats: b[query − key], or b[0] if key > query."""
    place = torch.arange(len(bias), device=bias.device)
    return bias[(place[:, None] - place).clamp(min=0)]
