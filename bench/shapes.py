"""The sizes of the training steps that are measured, and the operations that their matrix products need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pathsum.config import ModelConfig
from pathsum.model.fast.attention import blocks
from pipelines.paths import ROOT, params


@dataclass(frozen=True)
class Shape:
    """The sizes of one training step. All other settings are those of the default recipe."""

    name: str
    n_layers: int
    batch: int
    n_heads: int = 4
    d_head: int = 32
    d_model: int = 128
    n_ctx: int = 256
    d_vocab: int = 1024
    device: str = "cpu"
    positions: str = "relative"

    @property
    def tokens(self) -> int:
        return self.batch * self.n_ctx

    @property
    def title(self) -> str:
        """Return a readable name: the profile on a GPU, the sizes on a CPU."""
        if self.device != "cpu":
            return f"profile `{self.name}`, on a GPU"
        heads = f", {self.n_heads} heads" if self.n_layers else ""
        return f"{self.n_layers} layer{'' if self.n_layers == 1 else 's'}{heads}, batch {self.batch}"

    def windows(self) -> Tensor:
        return torch.randint(self.d_vocab, (self.batch, self.n_ctx + 1)).to(self.device)

    def select(self, *names: str) -> dict[str, Any]:
        """Return, by name, the sizes that every library names alike, and those in ``names``."""
        common = ("n_layers", "n_heads", "d_head", "d_model", "n_ctx")
        return {name: getattr(self, name) for name in (*common, *names)}


DEFAULT = Shape("L2H4_batch8", 2, 8)
LARGER = replace(DEFAULT, name="L2H4_batch16", batch=16)  # twice the default batch
SHAPES = (  # all but LARGER have the sizes of the default grid
    LARGER,
    DEFAULT,
    Shape("L1H4_batch8", 1, 8),
    Shape("L0_batch8", 0, 8),
)
ON_A_GPU = (  # sizes and positions of the profiles gpu and paper, all else as in the default recipe
    Shape("gpu", 2, 32, 4, 32, 256, 512, 1024, "cuda"),
    Shape("paper", 2, 32, 12, 64, 768, 2048, 50_000, "cuda", "sinusoidal"),
)


def model_config(shape: Shape) -> ModelConfig:
    """Return the model configuration of the default recipe with the sizes of ``shape``."""
    return ModelConfig(**{**params(ROOT)["model"], **shape.select("positions")})


def products(shape: Shape) -> list[tuple[int, int, int, int]]:
    """Return (batch, rows, inner, columns) of every matrix product in the forward and backward pass of a training
    step."""
    width, heads = shape.n_heads * shape.d_head, shape.batch * shape.n_heads
    layer, found = [(shape.d_model, 3 * width), (width, shape.d_model)], []
    for reads, writes in [*layer * shape.n_layers, (shape.d_model, shape.d_vocab)]:
        found += [(1, shape.tokens, reads, writes), (1, shape.tokens, writes, reads), (1, writes, shape.tokens, reads)]
    for start, end in list(blocks(shape.n_ctx)) * shape.n_layers:
        n, d = end - start, shape.d_head
        found += [(heads, n, d, end)] * 2 + [(heads, n, end, d)] * 2 + [(heads, end, n, d)] * 2
    return found


def flop(shape: Shape) -> float:
    """Return how many floating-point operations the matrix products of one training step take."""
    return 2.0 * sum(b * n * k * m for b, n, k, m in products(shape))
