"""Process the two halves of a batch in two threads on a CPU. Splitting each operation between threads instead would
synchronize them hundreds of times per step."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")
_SHARES = 2  # the same for any number of cores, because it affects the rounding of gradients


def halves(whole: Tensor) -> tuple[Tensor, ...]:
    """Split ``whole`` into two parts along its first dimension on a CPU."""
    return whole.chunk(_SHARES) if whole.device.type == "cpu" else (whole,)


def in_threads(work: Callable[..., Result], parts: tuple[Tensor, ...], *more: tuple[Any, ...]) -> list[Result]:
    """Apply ``work`` to each part, with the entry of each of ``more`` at its place, and return the results in order."""
    threads = torch.get_num_threads() // _SHARES if parts[0].device.type == "cpu" else 0
    return list((_workers(threads).map if threads and len(parts) > 1 else map)(work, parts, *more))


@lru_cache(maxsize=1)
def _workers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_SHARES, initializer=torch.set_num_threads, initargs=(threads,))
