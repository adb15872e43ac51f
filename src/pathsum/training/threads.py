"""On a processor a step's work is two threads' work, one half each, so that their kernels need not wait for each other
hundreds of times a step."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch
from torch import Tensor

Found = TypeVar("Found")
_SHARES = 2  # however many cores there are: it decides how gradients are rounded


def halves(whole: Tensor) -> tuple[Tensor, ...]:
    """``whole`` along its first dimension; on a GPU in one piece."""
    return whole.chunk(_SHARES) if whole.device.type == "cpu" else (whole,)


def side_by_side(work: Callable[[Tensor], Found], parts: tuple[Tensor, ...]) -> list[Found]:
    """``work`` of each part, in order; on a processor in threads, each with its share of torch's own."""
    threads = torch.get_num_threads() // _SHARES if parts[0].device.type == "cpu" else 0
    return list(_workers(threads).map(work, parts) if threads and len(parts) > 1 else map(work, parts))


@lru_cache(maxsize=1)
def _workers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_SHARES, initializer=torch.set_num_threads, initargs=(threads,))
