"""One layer of attention heads (AMF, "Attention Heads are Independent and Additive"; docs/framework.md §1.2).

Each head adds ``Σ_k A[q, k] x_k W_OVᵀ`` to position q. Positions change ``A`` alone: schemes are subclasses, which say
what position adds to queries and keys and to scores (``pathsum.model.positions``).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pathsum.config import ModelConfig


class Attention(nn.Module):
    """The heads of one layer without positions: scores see content and the causal mask.

    Weights have the paper's orientation and are stacked by head.
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
        # α^h (docs/framework.md §1.5): σ(2) = 0.88 of a key is its own at first
        smear = nn.Parameter(torch.full((heads,), 2.0)) if config.smeared_keys else None
        self.register_parameter("smear", smear)
        self.smear: nn.Parameter | None

    # ---- what a position scheme overrides -------------------------------------------------------------------------

    @classmethod
    def check(cls, config: ModelConfig) -> None:
        """Raise ValueError where a model of this scheme cannot have ``config``."""
        if config.clamp != "none":
            raise ValueError(
                "clamp: a head is clamped by its position bias: expected layers and relative positions, got "
                f"{config.n_layers} layers and {config.positions} positions"
            )

    def add_positions(self, config: ModelConfig) -> None:
        """Register the parameters and buffers of the scheme."""

    def position_vectors(self, pos: int) -> Float[Tensor, "n pos d_model"]:
        """Return what queries and keys read besides the residual stream: one vector per position, or none (n = 0)."""
        return self.W_Q.new_zeros(0, pos, self.W_Q.shape[-1])

    def position_bias(self, pos: int) -> Float[Tensor, "head distance"]:
        """Return what is added to the score of each head at query − key = 0, 1, …, in nats."""
        return self.W_Q.new_zeros(len(self.W_Q), pos)

    def project(
        self, x: Float[Tensor, "batch pos d_model"], W_QKV: Float[Tensor, "rows d_model"]
    ) -> Float[Tensor, "batch pos rows"]:
        """Apply the stacked W_Q, W_K and W_V to what a layer reads."""
        return F.linear(x, W_QKV)

    def rotate(self, x: Float[Tensor, "batch head pos d_head"]) -> Float[Tensor, "batch head pos d_head"]:
        """Turn queries or keys by position."""
        return x

    def mix(
        self,
        q: Float[Tensor, "batch head pos d_head"],
        k: Float[Tensor, "batch head pos d_head"],
        v: Float[Tensor, "batch head pos d_head"],
    ) -> Float[Tensor, "batch head pos d_head"]:
        """Return A v for training, without keeping A: equal to ``pattern(q, k) @ v`` up to rounding."""
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)

    # ---- the same for every scheme --------------------------------------------------------------------------------

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """Return the sum of what the heads write, for training, without the patterns."""
        mixed = self.mix(*self.queries_keys_values(x))
        batch, heads, pos, d_head = mixed.shape
        W_O = self.W_O.transpose(0, 1).reshape(-1, heads * d_head)
        return F.linear(mixed.transpose(1, 2).reshape(batch, pos, heads * d_head), W_O)

    def heads(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[Float[Tensor, "batch head query key"], Float[Tensor, "batch head pos d_model"]]:
        """Return every head's pattern and output; costs batch × heads × pos × (pos + d_model) numbers."""
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
        """Return q (scaled by 1/√d_head), k and v, with positions and smearing applied."""
        (heads, d_head, _), (batch, pos, _) = self.W_Q.shape, x.shape
        W_QKV = torch.cat([self.W_Q / math.sqrt(d_head), self.W_K, self.W_V]).flatten(0, 1)
        read = self.project(x, W_QKV)
        q, k, v = read.view(batch, pos, 3, heads, d_head).permute(2, 0, 3, 1, 4).contiguous()
        q, k = self.rotate(q), self.rotate(k)
        if self.smear is not None:
            own = self.smear.sigmoid()[:, None, None].to(k.dtype)
            k = own * k + (1 - own) * F.pad(k, (0, 0, 1, 0))[:, :, :-1]
        return q, k, v

    def pattern(
        self, q: Float[Tensor, "batch head pos d_head"], k: Float[Tensor, "batch head pos d_head"]
    ) -> Float[Tensor, "batch head query key"]:
        """Return softmax(q kᵀ + b[query − key]) over the keys up to the query."""
        return (q @ k.mT + self.position_scores(q.shape[2])).softmax(-1)

    def position_scores(self, pos: int) -> Float[Tensor, "head query key"]:
        """Return what position adds to each score: the bias, and −∞ for future keys."""
        at = torch.arange(pos, device=self.W_Q.device)
        distance = at[:, None] - at
        return self.position_bias(pos)[:, distance.clamp(min=0)].masked_fill(distance < 0, -math.inf)
