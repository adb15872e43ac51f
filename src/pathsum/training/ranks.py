"""One cell over several processes that torchrun starts, on one host or more: each takes its share of every batch.

Without torchrun there is one process, and nothing here does anything. Every process holds the whole model and takes the
same step with the mean of all gradients; the first alone writes. The hosts must see the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

_PATIENCE = timedelta(days=1)  # for the first, which evaluates or waits for a lock; torchrun notices who has died


@contextmanager
def together() -> Iterator[None]:
    """Join the other processes while the block lasts, where torchrun has started any."""
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        yield
        return
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=_PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()


def count() -> int:
    """How many processes train this cell?"""
    return dist.get_world_size() if _joined() else 1


def first() -> bool:
    """Is this the process that writes?"""
    return not _joined() or dist.get_rank() == 0


def beside() -> int:
    """How many of them share this machine?"""
    return int(os.environ["LOCAL_WORLD_SIZE"]) if _joined() else 1


def gpu() -> torch.device:
    """Which GPU is this process's?"""
    return torch.device("cuda", int(os.environ["LOCAL_RANK"])) if _joined() else torch.device("cuda")


def share(batch: Tensor) -> Tensor:
    """This process's windows of ``batch``."""
    return batch.chunk(count())[dist.get_rank()] if _joined() else batch


def mean(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The mean of each over all processes, to the same bits in each: one message for all."""
    if count() == 1:
        return tensors
    flat = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(flat)
    parts = (flat / count()).split([t.numel() for t in tensors])
    return [part.view(t.shape) for part, t in zip(parts, tensors, strict=True)]


def wait() -> None:
    """Go on when all have come here."""
    if _joined():
        dist.all_reduce(torch.zeros(1))  # a barrier would wake every GPU


def _joined() -> bool:
    return dist.is_available() and dist.is_initialized()
