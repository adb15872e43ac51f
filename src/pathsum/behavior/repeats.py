"""Score predictions of the second copy of repeated random tokens against guessing (docs/framework.md §5.4)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.induction import check_repeated


def guessing_nats(drawn: Float[Tensor, "vocab"]) -> float:
    """Return the loss, in nats, of a uniform guess among the tokens that random blocks are sampled from: the log of
    their number.

    These tokens are the ids with ``drawn`` > 0 except 0, the beginning-of-sequence token (BOS). ValueError without such
    tokens."""
    return math.log(int((drawn[1:] > 0).sum()))


def second_copy_top1(logits: Float[Tensor, "batch pos vocab"], tokens: Int[Tensor, "batch pos"], block: int) -> float:
    """Return the share of the second copy's tokens that are the model's most likely next token
    (docs/framework.md §5.4). 0..1.

    The first token of the copy is left out, because nothing predicts it; ``RepeatLosses.second_nats`` uses the same
    positions. ValueError unless ``tokens`` are BOS and a block given twice."""
    check_repeated(tokens, block)
    right = logits[:, block + 1 : -1].argmax(-1) == tokens[:, block + 2 :]
    return torch.mean(right, dtype=torch.float64).item()
