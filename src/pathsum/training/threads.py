"""Process the two halves of a batch in two threads on a CPU. Splitting each operation between threads instead would
synchronize them hundreds of times per step."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")
_SHARES = 2  # the same for any number of cores, because it affects the rounding of gradients


def halves(whole: Tensor) -> tuple[Tensor, ...]:
    """Split ``whole`` into two parts along its first dimension on a CPU. On a GPU, or if this dimension is 1, return it
    as the only part."""
    return whole.chunk(_SHARES) if whole.device.type == "cpu" else (whole,)


def in_threads(work: Callable[..., Result], parts: tuple[Tensor, ...], *more: tuple[Any, ...]) -> list[Result]:
    """Apply ``work`` to each part, with the entry of each of ``more`` at its place, and return the results in order.
    There must be at least one part.

    On a CPU two parts are processed at a time, each with half of torch's threads. With a single thread, or on a GPU,
    the parts are processed one after the other. Threads do not inherit ``torch.no_grad`` or ``torch.autocast``: set
    them in ``work``.
    """
    threads = torch.get_num_threads() // _SHARES if parts[0].device.type == "cpu" else 0
    return list((_workers(threads).map if threads and len(parts) > 1 else map)(work, parts, *more))


@lru_cache(maxsize=1)
def _workers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_SHARES, initializer=torch.set_num_threads, initargs=(threads,))
