"""Repeated random tokens: sequences whose second half is predictable from the first only (docs/framework.md §5.1)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from pathsum.data.bos import BOS


def repeated_random(
    n_windows: int,
    n_ctx: int,
    d_vocab: int,
    generator: torch.Generator,
    probabilities: Float[Tensor, "vocab"] | None = None,
) -> tuple[Int64[Tensor, "batch pos"], int]:
    """Sample BOS and a random block twice; return the tokens (2 · block + 1 per window) and the block length,
    (n_ctx − 1) // 2.

    Tokens are drawn independently: uniformly over all ids but BOS, or by ``probabilities`` (weights of every id, BOS
    left out whatever its weight; give the training text's counts, or their sign, to leave out ids never trained on).

    Scores are over the queries p of the second copy, block + 1 … 2 · block. Query p holds the token of p − block; an
    induction head attends to the next key, p − block + 1 ≥ 2, never BOS. Its token is the right prediction at p, for
    p < 2 · block (the sequence ends there). A token that occurs twice in a block has other matching keys too, so a
    perfect head scores slightly below 1 where the vocabulary is small.

    Raises ValueError where the window has no room or no token is left to draw.
    """
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
