"""The gradient of the next-token loss in one kernel, for a GPU: the logits are read twice and written once.

With the kernel, a training step takes 0.57 times as long (profile ``paper``) or 0.84 times as long (profile ``gpu``) as
with separate operations of torch (H100).
"""

import inspect

import torch
import triton
import triton.language as tl
from torch import Tensor

_MAX_BLOCK = 8192  # entries of a row that are processed at a time: 2 % faster than 4,096, 1 % slower than 16,384


def replace_by_gradient(logits: Tensor, targets: Tensor) -> Tensor:
    """Do what ``loss.log_p_on_gpu`` does, on the current GPU.

    ``logits`` must be contiguous, in bf16 or float32, and ``targets`` contiguous int64 from 0 to d_vocab − 1. The sums
    of a row have a fixed order, so the results are the same to the bit in every run."""
    rows, d_vocab = logits.shape
    log_p = torch.empty(rows, 1, device=logits.device)
    block = min(_MAX_BLOCK, triton.next_power_of_2(d_vocab))
    _replace_row[(rows,)](logits, targets, log_p, d_vocab, BLOCK=block, num_warps=8 if block > 4096 else 4)
    return log_p


def _row(logits, targets, log_p, d_vocab, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    logits += row * d_vocab
    target = tl.load(targets + row)
    of_target = tl.load(logits + target).to(tl.float32)  # before any thread overwrites it: the sums below wait for all
    most, total = -float("inf"), 0.0
    for start in range(0, d_vocab, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits + at, mask=at < d_vocab, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(most, tl.max(x))
        total = total * tl.exp(most - higher) + tl.sum(tl.exp(x - higher))
        most = higher
    log_total = tl.log(total)
    tl.store(log_p + row, of_target - most - log_total)
    for start in range(0, d_vocab, BLOCK):
        at = start + tl.arange(0, BLOCK)
        p = tl.exp(tl.load(logits + at, mask=at < d_vocab, other=0.0).to(tl.float32) - most - log_total)
        tl.store(logits + at, p - (at == target).to(tl.float32), mask=at < d_vocab)


_replace_row = triton.jit(inspect.unwrap(_row))  # tests wrap every function in a check of its types
