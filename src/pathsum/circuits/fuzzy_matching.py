"""Compute from the weights how well a second-layer head matches each current token with each previous token
(docs/framework.md §5.13).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pathsum.circuits.precision import unit
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights


def match_scores(
    weights: Weights,
    embedding: Float[Tensor, "d_model vocab"],
    late: Head,
    current: Float[Tensor, "head"],
    previous: Float[Tensor, "head"],
) -> LowRank:
    """Return the score of each current token at the query with each previous token at the key,
    (M_q W_E)ᵀ W_QK (M_k W_E).

    M_q and M_k describe how the heads h of the first layer move the two tokens:

        M_q = id + Σ_h a_h s W_OV^h,    M_k = Σ_h b_h s W_OV^h.

    a_h (``current``) and b_h (``previous``) are each head's mean attention to the current and to the previous position.
    s is the scale that the norm gives to a token's embedding alone. The W_E in ``weights`` is already multiplied by s,
    and ``embedding`` is W_E itself. The result is query × key, as low-rank factors. Multiplied by the norm scales of
    the second layer, it is in nats."""
    moved = [h.W_OV.left @ (h.W_OV.right @ weights.W_E) for h in weights.layers[0]]
    query = embedding + sum(a * x for a, x in zip(current, moved, strict=True))
    key = sum(b * x for b, x in zip(previous, moved, strict=True))
    return late.W_QK.then(query.mT).after(key)


def standardised(
    scores: LowRank, dest: Int[Tensor, "n"], source: Int[Tensor, "n"], present: Bool[Tensor, "vocab"]
) -> Float[Tensor, "n"]:
    """Return the scores of pairs of tokens, ``dest`` at the query and ``source`` at the key, in standard deviations
    over all pairs of ``present`` tokens.

    Each query's mean over the present keys is subtracted first, so the mean over all pairs is 0. ValueError
    for NaN or infinity."""
    scores = unit(scores)
    queries, keys = scores.left, scores.right
    keys = keys - keys[:, present].mean(1, keepdim=True)
    every = LowRank(queries[present], keys[:, present])
    spread = every.norm() / (every.shape[0] * every.shape[1]) ** 0.5
    return (queries[dest] * keys[:, source].mT).sum(-1) / spread.clamp(min=torch.finfo(spread.dtype).tiny)
