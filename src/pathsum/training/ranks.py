"""Data-parallel training of one model by the processes that torchrun starts, on hosts that share a folder: each takes
the same step with the mean gradient of all shares of a batch, and only the main one writes files."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

_PATIENCE = timedelta(days=1)  # longest wait for the main process to evaluate or to get a lock


@contextmanager
def process_group() -> Iterator[None]:
    """Join the process group during the block. Without torchrun, do nothing."""
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        yield
        return
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=_PATIENCE)
    if int(os.environ["LOCAL_RANK"]) < torch.cuda.device_count():  # with train.device=cpu there may be more processes
        torch.cuda.set_device(local_gpu())  # on which Triton launches its kernels, wherever their arguments are
    try:
        yield
    finally:
        dist.destroy_process_group()


def world_size() -> int:
    """Return the number of processes that train the model; 1 without torchrun."""
    return dist.get_world_size() if _joined() else 1


def is_main() -> bool:
    """Return whether this is the main process, which evaluates and writes."""
    return not _joined() or dist.get_rank() == 0


def local_processes() -> int:
    """Return the number of training processes on this machine; 1 without torchrun."""
    return int(os.environ["LOCAL_WORLD_SIZE"]) if _joined() else 1


def local_gpu() -> torch.device:
    """Return the GPU of this process: that of its LOCAL_RANK under torchrun, otherwise torch's current GPU."""
    return torch.device("cuda", int(os.environ["LOCAL_RANK"])) if _joined() else torch.device("cuda")


def share(batch: Tensor) -> Tensor:
    """Return the part of ``batch`` that this process trains on. The batch size must be a multiple of world_size()."""
    return batch.chunk(world_size())[dist.get_rank()] if _joined() else batch


def mean(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the mean of each tensor over all processes, by one all-reduce. It is bitwise equal on every process."""
    if world_size() == 1:
        return tensors
    flat = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(flat)
    parts = (flat / world_size()).split([t.numel() for t in tensors])
    return [part.view(t.shape) for part, t in zip(parts, tensors, strict=True)]


def barrier() -> None:
    """Wait until every process has reached this call."""
    if _joined():
        dist.all_reduce(torch.zeros(1))  # ``dist.barrier`` would start a context on every GPU


def _joined() -> bool:
    return dist.is_available() and dist.is_initialized()
