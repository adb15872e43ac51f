"""Reuse memory that a computation frees."""

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in malloc.h
_LARGE = 2**25  # bytes; glibc allows at most 32 MiB


@cache
def keep_freed(most: int) -> None:
    """Keep freed memory in this process instead of returning it to the system."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library or another system
        return
    mallopt(_TRIM_THRESHOLD, most)
    mallopt(_MMAP_THRESHOLD, _LARGE)
