"""Repeated random tokens: BOS (beginning of sequence), then the same random block twice (docs/framework.md §5.1)."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from pathsum.text.bos import BOS


def repeated_random(
    n_windows: int,
    n_ctx: int,
    d_vocab: int,
    generator: torch.Generator,
    probabilities: Float[Tensor, "vocab"] | None = None,
) -> tuple[Int64[Tensor, "batch pos"], int]:
    """Sample windows of BOS and a random block that occurs twice."""
    block = (n_ctx - 1) // 2
    if block < 1:
        raise ValueError(f"a repeated block needs n_ctx ≥ 3 (BOS and a token twice), got {n_ctx}; raise model.n_ctx")
    weights = torch.ones(d_vocab, dtype=torch.float64) if probabilities is None else probabilities.double().clone()
    weights[BOS] = 0.0
    drawn = torch.multinomial(weights, n_windows * block, replacement=True, generator=generator)
    copy = drawn.view(n_windows, block)
    return torch.cat([torch.full((n_windows, 1), BOS), copy, copy], dim=1), block
