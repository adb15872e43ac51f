"""One layer of attention heads (docs/framework.md §1.2). Each head adds ``Σ_k A[q, k] W_OV x_k`` at position q, where
x_k is the normalized residual stream at position k. Positions affect the pattern ``A`` alone, by subclasses."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pathsum.config import ModelConfig


class Attention(nn.Module):
    """The heads of one layer, without a position scheme: scores depend on content and on the causal mask only.

    ``W_Q[h]``, ``W_K[h]``, ``W_V[h]`` and ``W_O[h]`` are the matrices of head h (docs/framework.md §1.1).
    """

    bilinear = True  # scores are bilinear in what queries and keys read, with one W_QK for all pairs of positions

    def __init__(self, config: ModelConfig, generator: torch.Generator) -> None:
        super().__init__()
        heads, d_head, d_model = config.n_heads, config.d_head, config.d_model

        def matrix(*shape: int, scale: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator) * scale)

        self.W_Q = matrix(heads, d_head, d_model, scale=d_model**-0.5)
        self.W_K = matrix(heads, d_head, d_model, scale=d_model**-0.5)
        self.W_V = matrix(heads, d_head, d_model, scale=d_model**-0.5)
        self.W_O = matrix(heads, d_model, d_head, scale=(2 * d_model) ** -0.5)
        self.add_positions(config)
        # α^h (docs/framework.md §1.5); at initialization each key keeps the share σ(2) = 0.88 of itself
        smear = nn.Parameter(torch.full((heads,), 2.0)) if config.smeared_keys else None
        self.register_parameter("smear", smear)
        self.smear: nn.Parameter | None

    # ---- methods that position schemes override -------------------------------------------------------------------

    @classmethod
    def check(cls, config: ModelConfig) -> None:
        """Raise ValueError if this position scheme does not support ``config``."""
        if config.clamp != "none":
            raise ValueError(
                f"clamp: expected layers and relative positions, got {config.n_layers} and {config.positions}"
            )

    def add_positions(self, config: ModelConfig) -> None:
        """Register the parameters and buffers of the position scheme."""

    def position_vectors(self, pos: int) -> Float[Tensor, "n pos d_model"]:
        """Return the vectors that are added to what queries and keys read: n is 1 for sinusoidal positions, else 0."""
        return self.W_Q.new_zeros(0, pos, self.W_Q.shape[-1])

    def position_bias(self, pos: int) -> Float[Tensor, "head distance"]:
        """Return the bias that each head adds to its scores at distance query − key = 0 … pos − 1, in nats."""
        return self.W_Q.new_zeros(len(self.W_Q), pos)

    def rotate(self, x: Float[Tensor, "batch head pos d_head"]) -> Float[Tensor, "batch head pos d_head"]:
        """Rotate queries or keys by their positions. Without rotary positions, return them unchanged."""
        return x

    def mix(
        self,
        q: Float[Tensor, "batch head pos d_head"],
        k: Float[Tensor, "batch head pos d_head"],
        v: Float[Tensor, "batch head pos d_head"],
    ) -> Float[Tensor, "batch head pos d_head"]:
        """Return ``pattern(q, k) @ v`` up to rounding, by a fast path that does not return patterns."""
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)

    # ---- methods that all position schemes share ------------------------------------------------------------------

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """Return the sum of the writes of all heads, by a fast path. ``x`` is the normalized residual stream."""
        mixed = self.mix(*self.queries_keys_values(x))
        batch, heads, pos, d_head = mixed.shape
        W_O = self.W_O.transpose(0, 1).reshape(-1, heads * d_head)
        return F.linear(mixed.transpose(1, 2).reshape(batch, pos, heads * d_head), W_O)

    def heads(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[Float[Tensor, "batch head query key"], Float[Tensor, "batch head pos d_model"]]:
        """Return the pattern and the write of every head. Stores batch · heads · pos · (pos + d_model) numbers."""
        q, k, v = self.queries_keys_values(x)
        pattern = self.pattern(q, k)
        return pattern, pattern @ v @ self.W_O.mT

    def queries_keys_values(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_head"],
        Float[Tensor, "batch head pos d_head"],
    ]:
        """Return queries (scaled by 1/√d_head), keys and values, with rotation and key smearing applied."""
        return self.queries(x), self.keys(x), self.values(x)

    def queries(
        self, x: Float[Tensor, "batch pos d_model"], at: slice = slice(None)
    ) -> Float[Tensor, "batch head pos d_head"]:
        """Return the queries of the heads ``at``, scaled by 1/√d_head."""
        return self.rotate(_by_head(self._placed(x), self.W_Q[at] / math.sqrt(self.W_Q.shape[1])))

    def keys(
        self, x: Float[Tensor, "batch pos d_model"], at: slice = slice(None)
    ) -> Float[Tensor, "batch head pos d_head"]:
        """Return the keys of the heads ``at``."""
        k = self.rotate(_by_head(self._placed(x), self.W_K[at]))
        if self.smear is None:
            return k
        own = self.smear[at].sigmoid()[:, None, None].to(k.dtype)
        return own * k + (1 - own) * F.pad(k, (0, 0, 1, 0))[:, :, :-1]

    def values(
        self, x: Float[Tensor, "batch pos d_model"], at: slice = slice(None)
    ) -> Float[Tensor, "batch head pos d_head"]:
        """Return the values of the heads ``at``."""
        return _by_head(x, self.W_V[at])

    def side(self, side: str) -> Callable[..., Float[Tensor, "batch head pos d_head"]]:
        """Return the method for queries ("Q"), keys ("K") or values ("V")."""
        return {"Q": self.queries, "K": self.keys, "V": self.values}[side]

    def _placed(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """Add the position vectors, which queries and keys read."""
        return sum(self.position_vectors(x.shape[1]), x)

    def pattern(
        self,
        q: Float[Tensor, "batch head pos d_head"],
        k: Float[Tensor, "batch head pos d_head"],
        at: slice = slice(None),
    ) -> Float[Tensor, "batch head query key"]:
        """Return the pattern softmax(q kᵀ + b[query − key]) of the heads ``at`` over the keys up to the query, where b
        is ``position_bias``. ``q`` must already be scaled by 1/√d_head."""
        return (q @ k.mT).add_(self.position_scores(q.shape[2])[at]).softmax(-1)

    def position_scores(self, pos: int) -> Float[Tensor, "head query key"]:
        """Return what is added to the scores, in nats: the bias by distance, and −∞ for future keys."""
        at = torch.arange(pos, device=self.W_Q.device)
        distance = at[:, None] - at
        return self.position_bias(pos)[:, distance.clamp(min=0)].masked_fill(distance < 0, -math.inf)


def _by_head(
    x: Float[Tensor, "batch pos d_model"], W: Float[Tensor, "head d_head d_model"]
) -> Float[Tensor, "batch head pos d_head"]:
    return F.linear(x, W.flatten(0, 1)).unflatten(-1, W.shape[:2]).transpose(1, 2).contiguous()
