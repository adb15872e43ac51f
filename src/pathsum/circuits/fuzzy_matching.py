"""Score each pair of a current and a previous token, from the weights of a later head (docs/framework.md §5.13)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights


@dataclass(frozen=True)
class MatchScores:
    """(M_q W_E)ᵀ W_QK (M_k W_E): M_q moves the current token and M_k the previous one through the heads of the first
    layer, as far as they attend there,

        M_q = id + Σ_h a_h s W_OV^h,    M_k = Σ_h b_h s W_OV^h,

    a_h and b_h the head's mean attention to its own and to the previous position, s the scale at which the first layer
    reads an embedding. Where patterns are exactly these, it is the part of the second layer's scores that comes from
    the current token at the query and from the previous token at the key (up to the second layer's norm).
    """

    scores: LowRank

    @staticmethod
    def of(
        weights: Weights,
        embedding: Float[Tensor, "d_model vocab"],
        late: Head,
        current: Float[Tensor, "head"],
        previous: Float[Tensor, "head"],
    ) -> MatchScores:
        """``weights`` have W_E as the first layer reads it, ``embedding`` is W_E itself. Costs vocab · d_model ·
        d_head."""
        moved = [h.W_OV.left @ (h.W_OV.right @ weights.W_E) for h in weights.layers[0]]
        query = embedding + sum(a * x for a, x in zip(current, moved, strict=True))
        key = sum(b * x for b, x in zip(previous, moved, strict=True))
        return MatchScores(late.W_QK.then(query.mT).after(key))

    def standardised(
        self, dest: Int[Tensor, "n"], source: Int[Tensor, "n"], present: Bool[Tensor, "vocab"]
    ) -> Float[Tensor, "n"]:
        """Score these pairs in standard deviations of all pairs of ``present`` tokens, each query's mean over keys
        subtracted first, which softmax ignores. Mean 0 over all pairs. Costs vocab · d_head²."""
        queries, keys = self.scores.left, self.scores.right
        keys = keys - keys[:, present].mean(1, keepdim=True)
        every = LowRank(queries[present], keys[:, present])
        spread = every.norm() / (every.shape[0] * every.shape[1]) ** 0.5
        return (queries[dest] * keys[:, source].mT).sum(-1) / spread.clamp(min=torch.finfo(spread.dtype).tiny)
