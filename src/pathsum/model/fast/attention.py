"""Attention with a bias by distance, for training: forward and gradient by hand, in the precision of its inputs.

Autograd's own way stores and rewrites the scores several times, computes the future only to mask it, and scatters the
gradient of the bias. Here a block of queries meets the keys up to its own end alone, the bias is what the product of
queries and keys is added to, and the gradient of the bias is read off along diagonals. Forward and gradient together
take 1 / 1.5 to 1 / 1.7 of the time of ``F.scaled_dot_product_attention`` with the bias as its mask (8 windows of 256
tokens, 4 heads of 32, float32, two threads, AVX2).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

_softmax_backward = torch.ops.aten._softmax_backward_data.out
QUERIES = 128  # in a block: larger ones compute more of the future, smaller ones are more calls


def biased_attention(
    q: Float[Tensor, "batch head pos d_head"],
    k: Float[Tensor, "batch head pos d_head"],
    v: Float[Tensor, "batch head pos d_head"],
    bias: Float[Tensor, "head pos"],
) -> Float[Tensor, "batch head pos d_head"]:
    """What does each head move? softmax(q kᵀ + b[query − key]) v over the past, the present token included.

    Costs the pattern, batch · head · query · key / 2 numbers, kept for the way back."""
    mixed: Tensor = _BiasedAttention.apply(q, k, v, bias)
    return mixed


class _BiasedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        shape, bias = inputs[0].shape, inputs[3]
        q, k, v = (x.flatten(0, 1) for x in inputs[:3])
        added, mixed, patterns = by_distance(bias.to(q.dtype)), torch.empty_like(q), []
        with torch.autocast(q.device.type, enabled=False):
            for start, end in blocks(shape[2]):
                scores = added[:, start:end, :end].repeat(shape[0], 1, 1)
                scores.baddbmm_(q[:, start:end], k[:, :end].mT)
                patterns.append(torch.softmax(scores, -1, out=scores))
                torch.bmm(scores, v[:, :end], out=mixed[:, start:end])
        ctx.save_for_backward(q, k, v, *patterns)
        ctx.bias = bias
        return mixed.view(shape)

    @staticmethod
    def backward(ctx: Any, d_mixed: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        q, k, v, *patterns = ctx.saved_tensors
        (batch, heads, pos, _), d_out = d_mixed.shape, d_mixed.flatten(0, 1)
        d_q, d_k, d_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        d_added = ctx.bias.new_zeros(heads, pos, pos)
        for (start, end), pattern in zip(blocks(pos), patterns, strict=True):
            d_pattern = torch.bmm(d_out[:, start:end], v[:, :end].mT)
            d_scores = _softmax_backward(d_pattern, pattern, -1, pattern.dtype, grad_input=d_pattern)
            torch.bmm(d_scores, k[:, :end], out=d_q[:, start:end])
            d_k[:, :end].baddbmm_(d_scores.mT, q[:, start:end])
            d_v[:, :end].baddbmm_(pattern.mT, d_out[:, start:end])
            d_added[:, start:end, :end] = d_scores.unflatten(0, (batch, heads)).sum(0)
        return d_q.view_as(d_mixed), d_k.view_as(d_mixed), d_v.view_as(d_mixed), diagonal_sums(d_added)


def blocks(pos: int) -> list[tuple[int, int]]:
    """First query and the one after the last, of each block."""
    return [(start, min(start + QUERIES, pos)) for start in range(0, pos, QUERIES)]


def by_distance(bias: Float[Tensor, "head distance"]) -> Float[Tensor, "head query key"]:
    """b[query − key], and −∞ in the future: row i is a window of (b reversed, −∞ …) that starts at T − 1 − i."""
    n = bias.shape[1]
    return F.pad(bias.flip(-1), (0, n - 1), value=-math.inf).unfold(-1, n, 1).flip(1)


def diagonal_sums(scores: Float[Tensor, "head query key"]) -> Float[Tensor, "head distance"]:
    """Sums over query − key = 0, 1, … of ``scores`` whose future is 0.

    Behind the first number, rows of n + 1 instead of n end one key later each: their columns are diagonals, from
    distance n to 0; what a row takes from the one before it lies in that one's future."""
    n, flat = scores.shape[1], scores.flatten(1)
    sums = flat[:, 1:].unflatten(1, (n - 1, n + 1)).sum(1).flip(-1)[:, :n]
    sums[:, 0] += flat[:, 0]
    return sums
