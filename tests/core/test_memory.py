"""Memory that a computation frees is kept for the next one."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FAULTS = """
import resource, torch
from pathsum.core.memory import keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(2**22)  # 16 MB, as large as the tables of a step
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 10

torch.set_num_threads(1)
as_it_comes = faults()
keep_freed(2**30)
faults()
print(as_it_comes, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator can be told so")
def test_freed_memory_is_used_again() -> None:
    set_by_hand = ("MALLOC_", "GLIBC_", "LD_PRELOAD")
    own = {name: value for name, value in os.environ.items() if not name.startswith(set_by_hand)}
    done = subprocess.run([sys.executable, "-c", FAULTS], cwd=ROOT, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    as_it_comes, kept = map(int, done.stdout.split())
    if as_it_comes < 1000:
        pytest.skip("here nothing is returned: huge pages, or torch has an allocator of its own")
    assert 10 * kept < as_it_comes
