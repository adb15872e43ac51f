"""One layer of attention heads (AMF, "Attention Heads are Independent and Additive"; docs/framework.md §1.2).

Each head adds ``Σ_k A[q, k] x_k W_OVᵀ`` to position q. ``A`` sees positions; what is moved does not.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pathsum.config import ModelConfig
from pathsum.model.biased_attention import biased_attention


class Attention(nn.Module):
    """The heads of one layer, with their weights in the paper's orientation and stacked by head."""

    def __init__(self, config: ModelConfig, generator: torch.Generator) -> None:
        super().__init__()
        heads, d_head, d_model = config.n_heads, config.d_head, config.d_model

        def matrix(*shape: int, scale: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator) * scale)

        self.positions, self.n_ctx = config.positions, config.n_ctx
        self.W_Q = matrix(heads, d_head, d_model, scale=d_model**-0.5)
        self.W_K = matrix(heads, d_head, d_model, scale=d_model**-0.5)
        self.W_V = matrix(heads, d_head, d_model, scale=d_model**-0.5)
        self.W_O = matrix(heads, d_model, d_head, scale=(2 * d_model) ** -0.5)
        if config.positions == "relative":
            self.bias = nn.Parameter(torch.zeros(heads, config.n_ctx))  # b^h[q − k], in nats
        if config.smeared_keys:
            self.smear = nn.Parameter(torch.full((heads,), 2.0))  # α^h: σ(2) = 0.88 of a key is its own at first
        distance = torch.arange(config.n_ctx)[:, None] - torch.arange(config.n_ctx)
        self.register_buffer("distance", distance.clamp(min=0), persistent=False)
        self.register_buffer("future", distance < 0, persistent=False)
        self.register_buffer("waves", _waves(config), persistent=False)
        self.distance: Tensor
        self.future: Tensor
        self.waves: Tensor

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """The sum of what the heads write, for training: patterns are not kept for the caller."""
        q, k, v = self._queries_keys_values(x)
        if self.positions == "relative":
            mixed = biased_attention(q, k, v, self.bias[:, : x.shape[1]])
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
        batch, heads, pos, d_head = mixed.shape
        W_O = self.W_O.transpose(0, 1).reshape(-1, heads * d_head)
        return F.linear(mixed.transpose(1, 2).reshape(batch, pos, heads * d_head), W_O)

    def heads(
        self, x: Float[Tensor, "batch pos d_model"]
    ) -> tuple[Float[Tensor, "batch head query key"], Float[Tensor, "batch head pos d_model"]]:
        """Every head's pattern and what it writes; costs batch × heads × pos × (pos + d_model) numbers."""
        q, k, v = self._queries_keys_values(x)
        pattern = (q @ k.mT + self._position_scores(x.shape[1])).softmax(-1)
        return pattern, pattern @ v @ self.W_O.mT

    def _queries_keys_values(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q (with 1/√d_head in it), k and v, each (batch, head, pos, d_head)."""
        heads, d_head, _ = self.W_Q.shape
        batch, pos, _ = x.shape
        W_QKV = torch.cat([self.W_Q / math.sqrt(d_head), self.W_K, self.W_V]).flatten(0, 1)
        if self.positions == "sinusoidal":
            W_QK, W_V = W_QKV.split([2 * heads * d_head, heads * d_head])
            read = torch.cat([F.linear(x + self.waves[:pos].to(x.dtype), W_QK), F.linear(x, W_V)], dim=-1)
        else:
            read = F.linear(x, W_QKV)
        q, k, v = read.view(batch, pos, 3, heads, d_head).permute(2, 0, 3, 1, 4).contiguous()
        if self.positions == "rotary":
            q, k = _rotate(q, self.waves[:pos]), _rotate(k, self.waves[:pos])
        if hasattr(self, "smear"):
            own = self.smear.sigmoid()[:, None, None].to(k.dtype)
            k = own * k + (1 - own) * F.pad(k, (0, 0, 1, 0))[:, :, :-1]
        return q, k, v

    def _position_scores(self, pos: int) -> Float[Tensor, "head query key"]:
        """What position adds to each score: b^h[q − k], and −∞ where the key lies in the future."""
        future = self.future[:pos, :pos]
        if self.positions == "relative":
            return self.bias[:, self.distance[:pos, :pos]].masked_fill(future, -math.inf)
        return self.W_Q.new_zeros(1, pos, pos).masked_fill(future, -math.inf)


def _waves(config: ModelConfig) -> Float[Tensor, "pos wave"]:
    """Sinusoids of Vaswani et al. 2017: d_model of them for ``sinusoidal``, (cos, sin) of d_head / 2 for ``rotary``."""
    width = config.d_model if config.positions == "sinusoidal" else config.d_head
    if config.positions not in ("sinusoidal", "rotary"):
        return torch.zeros(0, 0)
    half = torch.arange((width + 1) // 2, dtype=torch.float64)
    angle = torch.arange(config.n_ctx, dtype=torch.float64)[:, None] / 10_000 ** (2 * half / width)
    return torch.cat([angle.cos(), angle.sin()], dim=-1)[:, :width]


def _rotate(x: Tensor, waves: Tensor) -> Tensor:
    """Su et al. 2021: turn each pair (x_i, x_{i + d_head/2}) by position × its frequency."""
    cos, sin = waves.to(x.dtype).chunk(2, dim=-1)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
