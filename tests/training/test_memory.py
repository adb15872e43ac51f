"""A step asks the system for no memory that the step before it freed."""

from __future__ import annotations

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
    """Page faults a step, after ten steps."""
    done = subprocess.run([sys.executable, "-c", STEPS, how], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator can be told so")
def test_memory_freed_by_a_step_is_the_next_ones() -> None:
    assert 10 * faults("kept") < faults("as it comes")
