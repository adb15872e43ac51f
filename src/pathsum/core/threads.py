"""Compute parts side by side in threads, each operation of torch in one. Splitting operations between threads instead
would synchronize them hundreds of times per training step, and change their last digits."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")
_PART = "pathsum-part"  # prefix of the names of threads
_threads = 1


def use_threads(n: int) -> None:
    """Let ``in_threads`` use ``n`` threads, and each operation of torch a single one, in this process."""
    global _threads
    _threads = n
    torch.set_num_threads(1)


def halves(whole: Tensor, least: int = 1) -> tuple[Tensor, ...]:
    """Split ``whole`` into two parts along its first dimension on a CPU, if each has ``least`` entries. This does not
    depend on the number of threads, because it affects the rounding of gradients."""
    return whole.chunk(2) if whole.device.type == "cpu" and len(whole) >= 2 * least else (whole,)


def in_threads(work: Callable[..., Result], parts: Sequence[Any], *more: Sequence[Any]) -> list[Result]:
    """Apply ``work`` to each part, with the entry of each of ``more`` at its place, and return the results in order.
    Threads do not inherit ``torch.no_grad``. Tensors on a GPU are not worked on side by side. Parts of a part are
    computed by its own thread, from the last on, and by threads that have nothing else to do."""
    each = list(zip(parts, *more, strict=True))
    if _threads == 1 or len(parts) < 2 or getattr(parts[0], "is_cuda", False):
        return [work(*one) for one in each]
    begun = [_workers(_threads).submit(work, *one) for one in each]
    within = threading.current_thread().name.startswith(_PART)
    own = {i: work(*each[i]) for i in reversed(range(len(each))) if within and begun[i].cancel()}
    return [own[i] if i in own else future.result() for i, future in enumerate(begun)]


@lru_cache(maxsize=1)
def _workers(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, _PART, torch.set_num_threads, (1,))
