"""The weights that every circuit is computed from. They may be trained, hand-made or random."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.core.lowrank import LowRank


@dataclass(frozen=True)
class Head:
    """The matrices of one attention head, as in Elhage et al. 2021 (docs/framework.md §1.1). They act on the
    column vectors to their right."""

    W_Q: Float[Tensor, "d_head d_model"]
    W_K: Float[Tensor, "d_head d_model"]
    W_V: Float[Tensor, "d_head d_model"]
    W_O: Float[Tensor, "d_model d_head"]

    @property
    def W_QK(self) -> LowRank:
        """Return W_Qᵀ W_K / √d_head. Without rotary positions or smeared keys, the score of query q and key k is
        x_qᵀ W_QK x_k plus position terms, in nats. Here x is the normalized residual stream."""
        return LowRank(self.W_Q.mT / math.sqrt(self.W_Q.shape[0]), self.W_K)

    @property
    def W_OV(self) -> LowRank:
        """Return W_O W_V. It maps the normalized residual stream at a key to what the head writes at a query that
        attends to this key with weight 1."""
        return LowRank(self.W_O, self.W_V)


@dataclass(frozen=True)
class Weights:
    """The weights of an attention-only transformer, with norms folded into the matrices that follow them.

    Folding absorbs the gain and the centering of a norm (docs/framework.md §1.4), but not its scale, which depends on
    the input. ``layers[l][h]`` is head h of layer l. The parameters of position schemes and of key smearing are not
    included. They affect attention scores only.
    """

    W_E: Float[Tensor, "d_model vocab"]
    W_U: Float[Tensor, "vocab d_model"]
    layers: tuple[tuple[Head, ...], ...] = ()

    def to(self, dtype: torch.dtype) -> Weights:
        """Return the same weights with the data type ``dtype``."""
        layers = tuple(
            tuple(Head(h.W_Q.to(dtype), h.W_K.to(dtype), h.W_V.to(dtype), h.W_O.to(dtype)) for h in layer)
            for layer in self.layers
        )
        return Weights(self.W_E.to(dtype), self.W_U.to(dtype), layers)
