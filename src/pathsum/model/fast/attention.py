"""Attention with a bias by distance, for training. Forward and backward are written by hand, in the precision of the
inputs.

Autograd writes the scores several times, computes scores of future keys and then masks them, and scatters the gradient
of the bias. Here each block of queries uses only the keys up to its own end. The products of queries and keys are added
to the bias in place, and the gradient of the bias is a sum along diagonals. Forward and backward together are 1.5 to
1.7 times as fast as ``F.scaled_dot_product_attention`` with the bias as its mask (8 windows of 256 tokens, 4 heads of
width 32, float32, two threads, AVX2).
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

_softmax_backward = torch.ops.aten._softmax_backward_data.out
QUERIES = 128  # per block: larger blocks compute more scores of future keys, smaller ones need more calls


def biased_attention(
    q: Float[Tensor, "batch head pos d_head"],
    k: Float[Tensor, "batch head pos d_head"],
    v: Float[Tensor, "batch head pos d_head"],
    bias: Float[Tensor, "head pos"],
) -> Float[Tensor, "batch head pos d_head"]:
    """Return softmax(q kᵀ + bias[query − key]) v of each head, over the keys up to the query.

    ``q`` must already be scaled by 1/√d_head. The patterns are stored for the backward pass: about batch · head · pos ·
    (pos + QUERIES) / 2 numbers.
    """
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
            d_added[:, start:end, :end] = d_scores.unflatten(0, (batch, heads)).sum(0, dtype=d_added.dtype)
        return d_q.view_as(d_mixed), d_k.view_as(d_mixed), d_v.view_as(d_mixed), diagonal_sums(d_added)


def blocks(pos: int) -> list[tuple[int, int]]:
    """Return the blocks of at most QUERIES queries, each as (first query, last query + 1)."""
    return [(start, min(start + QUERIES, pos)) for start in range(0, pos, QUERIES)]


def by_distance(bias: Float[Tensor, "head distance"]) -> Float[Tensor, "head query key"]:
    """Return a table of bias[query − key] by query and key, with −∞ for future keys.

    With n distances, row i is the slice of length n that starts at entry n − 1 − i of (bias reversed, −∞, −∞, …).
    """
    n = bias.shape[1]
    return F.pad(bias.flip(-1), (0, n - 1), value=-math.inf).unfold(-1, n, 1).flip(1)


def diagonal_sums(scores: Float[Tensor, "head query key"]) -> Float[Tensor, "head distance"]:
    """Return, for each distance query − key from 0 to n − 1, the sum of the n × n ``scores`` at this distance. The
    scores of future keys must be 0.

    All scores but the first (query 0, key 0) are viewed as n − 1 rows of length n + 1. Row r of this view holds the
    future keys of query r, whose scores are 0, and then the keys 0 to r + 1 of query r + 1. Column c therefore holds
    distance n − c, and column 0 only zeros. The first score is added to distance 0.
    """
    n, flat = scores.shape[1], scores.flatten(1)
    sums = flat[:, 1:].unflatten(1, (n - 1, n + 1)).sum(1).flip(-1)[:, :n]
    sums[:, 0] += flat[:, 0]
    return sums
