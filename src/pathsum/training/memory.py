"""Memory that one step frees is the next step's."""

from __future__ import annotations

import ctypes
from functools import lru_cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names in malloc.h
_KEPT, _LARGE = 2**30, 2**25  # bytes; glibc takes no more than 32 MiB for the second


@lru_cache(maxsize=1)
def keep_freed() -> None:
    """Have this process keep up to 1 GiB that it frees, in place of returning it and asking for it again: thousands of
    page faults a step, which took between a tenth and a quarter of its time. glibc alone can be told so; elsewhere
    nothing happens."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another libc, another system
        return
    mallopt(_TRIM_THRESHOLD, _KEPT)
    mallopt(_MMAP_THRESHOLD, _LARGE)
