"""Two threads for the two halves of a batch on a CPU, so that kernels do not synchronize hundreds of times per step."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")
_SHARES = 2  # at any number of cores: it decides how gradients are rounded


def halves(whole: Tensor) -> tuple[Tensor, ...]:
    """Split ``whole`` in two along its first dimension; on a GPU keep it in one piece."""
    return whole.chunk(_SHARES) if whole.device.type == "cpu" else (whole,)


def in_threads(work: Callable[[Tensor], Result], parts: tuple[Tensor, ...]) -> list[Result]:
    """Apply ``work`` to each part, in order; on a CPU in parallel, with torch's threads shared among the parts."""
    threads = torch.get_num_threads() // _SHARES if parts[0].device.type == "cpu" else 0
    return list(_workers(threads).map(work, parts) if threads and len(parts) > 1 else map(work, parts))


@lru_cache(maxsize=1)
def _workers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_SHARES, initializer=torch.set_num_threads, initargs=(threads,))
