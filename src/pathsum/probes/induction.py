"""Induction on repeated random tokens: the beginning-of-sequence token, then a random block twice (ICL "defining
induction heads").

Position 0 is the beginning of the sequence, the first copy is at 1 … block, the second at block + 1 … 2·block. The
token at p in the second copy first stood at p − block, and was followed by the one at p − block + 1: from 2 to
block + 1, never the beginning of the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class RepeatLosses:
    """Mean loss on each copy of a repeated block."""

    first_nats: float
    second_nats: float  # without its first token, which is unpredictable


def prefix_matching(pattern: Float[Tensor, "batch head query key"], block: int) -> Float[Tensor, "head"]:
    """Average the attention to the token after the previous occurrence of the current token (ICL "defining induction
    heads").

    This is the mean of A[p, p − block + 1] over p = block + 1 … 2·block, 0..1. Uniform causal attention scores about
    1/(1.5·block). Costs batch · head · block. Raises ValueError unless the window has 1 + 2·block positions.
    """
    _check_length(pattern.shape[-1], block)
    return pattern.diagonal(1 - block, -2, -1)[..., 2:].mean((0, -1))


def copying(
    head_output: Float[Tensor, "batch head pos d_model"],
    tokens: Int[Tensor, "batch pos"],
    W_U: Float[Tensor, "vocab d_model"],
    block: int,
) -> Float[Tensor, "head"]:
    """Measure how often a head's own output raises the next token; after ICL's copying score, docs/framework.md §5.3.

    Mean over p = block + 1 … 2·block − 1 of sign((W_U o_p)[next] − mean over the vocabulary), where o_p is what the
    head writes at p; the scale of the final norm does not change the sign. −1..1: 1 where the repeated token is always
    raised above the mean, about 0 where the output is unrelated to it, −1 where it is always lowered. (ICL
    compares amounts after a ReLU; the sign needs no scale and no product with the vocabulary.) Costs
    batch · head · block · d_model. ValueError where ``tokens`` are not BOS and a block twice.
    """
    check_repeated(tokens, block)
    second = slice(block + 1, 2 * block)
    following = tokens[:, block + 2 :]
    reading = W_U[following] - W_U.mean(0)
    raised = torch.einsum("bhpd,bpd->bhp", head_output[:, :, second], reading)
    return raised.sign().mean((0, -1))


def repeat_losses(
    logits: Float[Tensor, "batch pos vocab"], tokens: Int[Tensor, "batch pos"], block: int
) -> RepeatLosses:
    """Compute the mean loss on each copy (ICL "defining induction heads"), in nats, from 0.

    The logits at p are for the token at p + 1. The second copy's first token is left out. Costs batch · pos · d_vocab.
    ValueError where ``tokens`` are not BOS and a block twice.
    """
    check_repeated(tokens, block)
    losses = cross_entropy(logits[:, :-1].mT, tokens[:, 1:].long(), reduction="none")
    return RepeatLosses(losses[:, :block].mean().item(), losses[:, block + 1 :].mean().item())


def check_repeated(tokens: Int[Tensor, "batch pos"], block: int) -> None:
    """Raise ValueError unless ``tokens`` are BOS and a block twice, with BOS nowhere else."""
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
