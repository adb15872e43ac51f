"""Measure from the weights how strongly a head prefers keys that carry the same token as the query
(docs/framework.md §5.5)."""

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from pathsum.circuits.paths import Path
from pathsum.circuits.precision import require_single
from pathsum.circuits.qk_ov import shares
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights


def scale_as_read(
    scale: Float[Tensor, "batch pos"], tokens: Int[Tensor, "batch pos"], d_vocab: int
) -> Float[Tensor, "vocab"]:
    """Return, for each token, the mean norm scale of a layer over all positions that hold the token.

    0 for tokens that do not occur."""
    totals = scale.new_zeros(d_vocab).index_add(0, tokens.flatten(), scale.flatten())
    return totals / torch.bincount(tokens.flatten(), minlength=d_vocab).clamp(min=1)


def pair_matching_eigenvalues(
    weights: Weights,
    late: Head,
    paths: tuple[Path, Path],
    scales: tuple[Float[Tensor, "vocab"], Float[Tensor, "vocab"]],
    unigram: Float[Tensor, "vocab"],
) -> Complex[Tensor, "rank"]:
    """Return the eigenvalues of (M_q W_E c_q)ᵀ W_QK (M_k W_E c_k) for a pair of paths, one to the query and one to the
    key.

    M = W_OV^{h_n} ⋯ W_OV^{h_1} along a path (the identity for the direct path), and W_QK is that of the ``late`` head.
    c = ``scales`` are the norm scales at which each token's embedding is read (``scale_as_read``), so W_E itself is not
    scaled. Positive real parts indicate that the head attends where both paths start at the same token. Each query's
    mean over the keys of positive scale, weighted by ``unigram``, is subtracted first. In nats before later norm
    scales. ValueError as in ``qk_ov.shares``, applied to ``unigram`` at these keys, and as in
    ``precision.require_single`` for the weights. See docs/framework.md §5.5."""
    heads = [weights.layers[layer][head] for path in paths for layer, head in path]
    require_single(weights.W_E, late.W_Q, late.W_K, *(W for head in heads for W in (head.W_V, head.W_O)))
    query, key = (
        _along_path(weights, path, reader) * scale
        for path, reader, scale in zip(paths, (late.W_QK.left.mT, late.W_QK.right), scales, strict=True)
    )
    mean_key = key @ shares(unigram * (scales[1] > 0)).to(key)  # over tokens that occur in the windows
    return LowRank(query.mT, key - mean_key.unsqueeze(-1)).eigenvalues()


def _along_path(weights: Weights, path: Path, reader: Float[Tensor, "d_head d_model"]) -> Float[Tensor, "d_head vocab"]:
    """Return ``reader`` · W_OV^{h_n} ⋯ W_OV^{h_1} W_E for the heads h_1, …, h_n of ``path``."""
    for layer, head in reversed(path):
        W_OV = weights.layers[layer][head].W_OV
        reader = reader @ W_OV.left @ W_OV.right
    return reader @ weights.W_E
