"""Induction on repeated random tokens: BOS (beginning of sequence), then the same random block twice
(docs/framework.md §5.1).

Position 0 is BOS. The copies are at 1 … block and at block + 1 … 2·block. The token at position p of the second copy
also stands at p − block, and the token after this earlier occurrence at p − block + 1. All means are over positions and
windows.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class RepeatLosses:
    """Mean losses on the two copies of a repeated block, in nats per token (docs/framework.md §5.4)."""

    first_nats: float
    second_nats: float  # without the first token of the copy, which cannot be predicted


def prefix_matching(pattern: Float[Tensor, "batch head query key"], block: int) -> Float[Tensor, "head"]:
    """Return each head's mean attention to the token after the earlier occurrence of the current token
    (docs/framework.md §5.2).

    The score is the mean of A[p, p − block + 1] over p = block + 1 … 2·block, from 0 to 1. Uniform causal attention
    scores about ln 2 / block. Raises ValueError if block < 2, or if the window does not have 1 + 2·block positions.
    """
    _check_length(pattern.shape[-1], block)
    return pattern.diagonal(1 - block, -2, -1)[..., 2:].mean((0, -1))


def copying(
    head_output: Float[Tensor, "batch head pos d_model"],
    tokens: Int[Tensor, "batch pos"],
    W_U: Float[Tensor, "vocab d_model"],
    block: int,
) -> Float[Tensor, "head"]:
    """Return how consistently each head's output raises the logit of the next token (docs/framework.md §5.3).

    Let o_p be the head's output at p. The score is the mean over p = block + 1 … 2·block − 1 of sign((W_U o_p)[next
    token] − mean of W_U o_p over the vocabulary). It is 1 if the output always raises the next token above the mean
    token, and −1 if it always lowers it. Chance, the same score with the tokens of another window, need not be 0. The
    scale of the final norm does not change the sign, but its centering must be folded into ``W_U``. (The copying score
    of Olsson et al. 2022 compares amounts after a ReLU.) Raises ValueError unless ``check_repeated`` passes."""
    check_repeated(tokens, block)
    second = slice(block + 1, 2 * block)
    following = tokens[:, block + 2 :]
    reading = W_U[following] - W_U.mean(0)
    raised = torch.einsum("bhpd,bpd->bhp", head_output[:, :, second], reading)
    return (raised.sign() + 0 * raised).mean((0, -1))  # the sign of NaN is 0


def repeat_losses(
    logits: Float[Tensor, "batch pos vocab"], tokens: Int[Tensor, "batch pos"], block: int
) -> RepeatLosses:
    """Return the mean loss on each copy, in nats per token (docs/framework.md §5.4).

    The logits at position p predict the token at p + 1. The first token of the second copy is left out. Raises
    ValueError unless ``tokens`` pass ``check_repeated``."""
    check_repeated(tokens, block)
    losses = cross_entropy(logits[:, :-1].mT, tokens[:, 1:].long(), reduction="none")
    return RepeatLosses(losses[:, :block].mean().item(), losses[:, block + 1 :].mean().item())


def check_repeated(tokens: Int[Tensor, "batch pos"], block: int) -> None:
    """Raise ValueError unless each window is BOS and a block of ``block`` ≥ 2 tokens twice, without another BOS. The
    first token of the first window counts as BOS."""
    _check_length(tokens.shape[-1], block)
    start, first, second = tokens[:, :1], tokens[:, 1 : block + 1], tokens[:, block + 1 :]
    if not (first == second).all():
        raise ValueError(
            "expected the same block twice, got copies that differ; overwrite tokens in both or in neither"
        )
    if (tokens[:, 1:] == start).any() or not (start == start[:1]).all():
        raise ValueError(
            "expected one beginning-of-sequence token, at position 0 only, got another there or one inside a block; "
            "sample blocks from the other tokens"
        )


def _check_length(pos: int, block: int) -> None:
    if block < 2 or pos != 1 + 2 * block:
        raise ValueError(
            f"expected BOS and a block of at least 2 tokens twice, 1 + 2·block positions, got {pos} for block = {block}"
        )
