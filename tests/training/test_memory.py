"""A training step reuses the memory that the step before it freed."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

STEPS = """
import resource, sys
import torch
from bench.train_step import SHAPES, ours
from pathsum.training import step

if sys.argv[1] == "as it comes":
    step.keep_freed = lambda: None
torch.set_num_threads(2)
train = ours(SHAPES[0])
for _ in range(10):
    train()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    train()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 5)
"""


def faults(how: str) -> int:
    """Return the page faults per step, after ten steps."""
    set_by_hand = ("MALLOC_", "GLIBC_", "LD_PRELOAD")
    own = {name: value for name, value in os.environ.items() if not name.startswith(set_by_hand)}
    done = subprocess.run([sys.executable, "-c", STEPS, how], cwd=ROOT, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator can be told so")
def test_memory_freed_by_a_step_is_the_next_ones() -> None:
    if (as_it_comes := faults("as it comes")) < 1000:
        pytest.skip("here nothing is returned: huge pages, or torch has an allocator of its own")
    assert 2 * faults("kept") < as_it_comes
