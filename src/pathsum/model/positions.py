"""Position schemes, one class each (docs/framework.md §1.3). A new scheme needs a class here and its name in
``SCHEMES``."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pathsum.config import ModelConfig, unknown
from pathsum.model.attention import Attention
from pathsum.model.fast.attention import biased_attention


class Relative(Attention):
    """Add to each score a learned bias, one per head and distance query − key."""

    bias: nn.Parameter  # b^h[q − k], in nats

    @classmethod
    def check(cls, config: ModelConfig) -> None:
        if not config.n_layers:
            super().check(config)

    def add_positions(self, config: ModelConfig) -> None:
        self.bias = nn.Parameter(torch.zeros(config.n_heads, config.n_ctx))

    def position_bias(self, pos: int) -> Float[Tensor, "head distance"]:
        return self.bias[:, :pos]

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Float[Tensor, "batch head pos d_head"]:
        return biased_attention(q, k, v, self.position_bias(q.shape[2]))


class Sinusoidal(Attention):
    """Add a fixed sinusoid of the position to what queries and keys read, but not to what values read.

    This is the scheme of Elhage et al. 2021.
    """

    waves: Tensor

    def add_positions(self, config: ModelConfig) -> None:
        self.register_buffer("waves", sinusoids(config.n_ctx, config.d_model), persistent=False)

    def position_vectors(self, pos: int) -> Float[Tensor, "n pos d_model"]:
        return self.waves[None, :pos].to(self.W_Q.dtype)


class Rotary(Attention):
    """Rotate queries and keys by angles proportional to the position (Su et al. 2021).

    The pair (x_i, x_{i + d_head/2}) is rotated by position · base^(−2i/d_head) radians.
    """

    bilinear = False
    base = 10_000.0  # the longest period is 2π · base^(1 − 2/d_head) positions
    waves: Tensor

    @classmethod
    def check(cls, config: ModelConfig) -> None:
        super().check(config)
        if config.d_head % 2:
            raise ValueError(f"d_head: rotary positions need an even d_head, got {config.d_head}")

    def add_positions(self, config: ModelConfig) -> None:
        self.register_buffer("waves", sinusoids(config.n_ctx, config.d_head, self.base), persistent=False)

    def rotate(self, x: Float[Tensor, "batch head pos d_head"]) -> Float[Tensor, "batch head pos d_head"]:
        cos, sin = self.waves[: x.shape[2]].to(x.dtype).chunk(2, dim=-1)
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


SCHEMES: dict[str, type[Attention]] = {
    "relative": Relative,
    "sinusoidal": Sinusoidal,
    "rotary": Rotary,
    "none": Attention,
}


def scheme(config: ModelConfig) -> type[Attention]:
    """Return the position scheme that ``config.positions`` names. Raises ValueError if there is none, or if it does
    not support the other settings."""
    if config.positions not in SCHEMES:
        raise ValueError(f"positions: {unknown(config.positions, SCHEMES, 'scheme')}")
    SCHEMES[config.positions].check(config)
    return SCHEMES[config.positions]


def sinusoids(n_ctx: int, width: int, base: float = 10_000.0) -> Float[Tensor, "pos wave"]:
    """Return ``width`` sinusoids of each position (Vaswani et al. 2017): first the cosines, then the sines of the same
    frequencies base^(−2i/width), i = 0, 1, …, in radians per position. An odd width lacks the last sine."""
    half = torch.arange((width + 1) // 2, dtype=torch.float64)
    angle = torch.arange(n_ctx, dtype=torch.float64)[:, None] / base ** (2 * half / width)
    return torch.cat([angle.cos(), angle.sin()], dim=-1)[:, :width]
