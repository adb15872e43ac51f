"""Matching of tokens on one path to a head's queries and one to its keys, from weights (docs/framework.md §5.5)."""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from pathsum.circuits.paths import Path
from pathsum.circuits.qk_ov import shares
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights


def scale_as_read(
    scale: Float[Tensor, "batch pos"], tokens: Int[Tensor, "batch pos"], d_vocab: int
) -> Float[Tensor, "vocab"]:
    """Average the norm scale at which a layer reads each token's embedding, over the positions that hold the token; 0
    for tokens that do not occur."""
    totals = scale.new_zeros(d_vocab).index_add(0, tokens.flatten(), scale.flatten())
    return totals / torch.bincount(tokens.flatten(), minlength=d_vocab).clamp(min=1)


def pair_matching_eigenvalues(
    weights: Weights,
    late: Head,
    paths: tuple[Path, Path],
    scales: tuple[Float[Tensor, "vocab"], Float[Tensor, "vocab"]],
    unigram: Float[Tensor, "vocab"],
) -> Complex[Tensor, "rank"]:
    """Return the eigenvalues of (M_q W_E c_q)ᵀ W_QK (M_k W_E c_k), with M = W_OV^{h_n} ⋯ W_OV^{h_1} along the path to
    the query or to the key, and c the ``scales`` at which each token's embedding is read.

    Positive where the pair makes the head attend to its own token. Each query's mean over keys under ``unigram`` is
    subtracted first. Nats. Costs d_vocab · d_model · d_head."""
    query, key = (
        _along_path(weights, path, reader) * scale
        for path, reader, scale in zip(paths, (late.W_QK.left.mT, late.W_QK.right), scales, strict=True)
    )
    mean_key = key @ shares(unigram * (scales[1] > 0)).to(key)  # of tokens that are read there
    return LowRank(query.mT, key - mean_key.unsqueeze(-1)).eigenvalues()


def _along_path(weights: Weights, path: Path, reader: Float[Tensor, "d_head d_model"]) -> Float[Tensor, "d_head vocab"]:
    """Apply a reader to each token as a path moves it."""
    for layer, head in reversed(path):
        W_OV = weights.layers[layer][head].W_OV
        reader = reader @ W_OV.left @ W_OV.right
    return reader @ weights.W_E
