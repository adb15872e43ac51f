"""Test from weights whether a head matches tokens on one path to its queries and one to its keys."""

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
    """Average the factor by which a layer's norm multiplies each token's embedding, over the positions that hold the
    token; 0 for tokens that do not occur, which drop out."""
    totals = scale.new_zeros(d_vocab).index_add(0, tokens.flatten(), scale.flatten())
    return totals / torch.bincount(tokens.flatten(), minlength=d_vocab).clamp(min=1)


def pair_matching_eigenvalues(
    weights: Weights,
    late: Head,
    paths: tuple[Path, Path],
    scales: tuple[Float[Tensor, "vocab"], Float[Tensor, "vocab"]],
    unigram: Float[Tensor, "vocab"],
) -> Complex[Tensor, "rank"]:
    """Return the eigenvalues of (M_q W_E c_q)ᵀ W_QK (M_k W_E c_k), M = W_OV^{h_n} ⋯ W_OV^{h_1} of the path to the query
    and of the path to the key, c the ``scales`` at which either reads each token's embedding (AMF "how induction heads
    work").

    Positive where the pair makes the head attend to its own token. With the direct path to the query, the path through
    a previous-token head to the key, and scales of ones, these are ``eigenvalues.matching_eigenvalues``. Each query's
    mean over keys under ``unigram``, which softmax ignores, is subtracted first. Nats. Costs d_vocab · d_model ·
    d_head.
    """
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
