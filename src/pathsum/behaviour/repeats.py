"""Predictions of the second copy of repeated random tokens, against guessing (ICL "defining induction heads").

The first copy is no baseline: a model of text has a higher loss on random tokens than uniform guessing.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.probes.induction import check_repeated


def guessing_nats(drawn: Float[Tensor, "vocab"]) -> float:
    """Compute the loss of uniform guessing among the tokens of random blocks: the log of their number, nats. These are
    the ids with ``drawn`` > 0 except 0, BOS. A guess is right with probability e^−loss."""
    return math.log(int((drawn[1:] > 0).sum()))


def second_copy_top1(logits: Float[Tensor, "batch pos vocab"], tokens: Int[Tensor, "batch pos"], block: int) -> float:
    """Compute the accuracy of the likeliest next token on the second copy, without its first token, which is
    unpredictable: the positions of ``RepeatLosses.second_nats``. 0..1.

    Costs batch · pos · d_vocab. ValueError if ``tokens`` are not BOS and a block twice."""
    check_repeated(tokens, block)
    right = logits[:, block + 1 : -1].argmax(-1) == tokens[:, block + 2 :]
    return torch.mean(right, dtype=torch.float64).item()
