"""One optimiser step. On a processor the two halves of a batch are two threads' work, so that their kernels need not
wait for each other hundreds of times a step; on a GPU the batch stays whole."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from pathsum.model.transformer import Transformer
from pathsum.training import ranks
from pathsum.training.loss import next_token_loss

Found = TypeVar("Found")
_SHARES = 2  # however many cores there are: it decides how gradients are rounded


def update(model: Transformer, opts: list[Optimizer], batch: Tensor, autocast: bool) -> float:
    """One optimiser step on ``batch`` (windows of n_ctx + 1 tokens), this process's share of it where there are more;
    the mean loss before it, in nats, of all."""
    parameters = list(model.parameters())

    def share(windows: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """What ``windows`` contribute to the batch's mean loss, and its gradients."""
        with torch.autocast(batch.device.type, torch.bfloat16, enabled=autocast):
            loss = next_token_loss(model.read(windows[:, :-1]), model.W_U, windows[:, 1:])
            loss = loss * (len(windows) / len(batch))
        return loss.detach(), torch.autograd.grad(loss, parameters)

    shares = batch.chunk(_SHARES) if batch.device.type == "cpu" else (batch,)
    (loss, gradients), *others = side_by_side(share, shares)
    for other, more in others:
        loss += other
        torch._foreach_add_(gradients, more)
    loss, *everyones = ranks.mean((loss, *gradients))
    for p, gradient in zip(parameters, everyones, strict=True):
        p.grad = torch.empty_like(p).copy_(gradient)  # fused AdamW walks memory: it must lie as its parameter does
    for opt in opts:
        opt.step()
        opt.zero_grad(set_to_none=True)
    return loss.item()


def side_by_side(work: Callable[[Tensor], Found], parts: tuple[Tensor, ...]) -> list[Found]:
    """``work`` of each part, in order; on a processor in threads, each with its share of torch's own."""
    threads = torch.get_num_threads() // _SHARES if parts[0].device.type == "cpu" else 0
    return list(_workers(threads).map(work, parts) if threads and len(parts) > 1 else map(work, parts))


@lru_cache(maxsize=1)
def _workers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_SHARES, initializer=torch.set_num_threads, initargs=(threads,))
