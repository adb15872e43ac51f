"""Repeated random tokens: BOS (beginning of sequence), then the same random block twice (docs/framework.md §5.1)."""

from __future__ import annotations

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
    if weights.shape != (d_vocab,):
        raise ValueError(f"expected a probability for each of {d_vocab} ids, got shape {tuple(weights.shape)}")
    weights[BOS] = 0.0
    if not (weights.isfinite().all() and (weights >= 0).all() and weights.sum() > 0):
        raise ValueError(
            "expected finite probabilities ≥ 0 with some weight on ids other than BOS, got "
            f"{int((weights > 0).sum())} positive, {int((weights < 0).sum())} negative, "
            f"{int((~weights.isfinite()).sum())} not finite; pass the training text's unigram counts"
        )
    drawn = torch.multinomial(weights, n_windows * block, replacement=True, generator=generator)
    copy = drawn.view(n_windows, block)
    return torch.cat([torch.full((n_windows, 1), BOS), copy, copy], dim=1), block
