"""Peak memory of this process."""

from __future__ import annotations

import resource
import sys


def peak_mb() -> float:
    """Return the peak so far, in MiB; Linux counts in KiB, macOS in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
