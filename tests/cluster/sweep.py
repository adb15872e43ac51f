"""The sweep of the tests in this folder, what it has stored so far, and which process trains what."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

from pathsum.core.manifest import MANIFEST

T = TypeVar("T")
MODELS = 6
TOKENS = 327_680  # that each model sees: 640 batches, some seconds
FIXED = (
    "tracking=none",
    "train.device=cpu",
    f"train.tokens={TOKENS}",
    "train.resume_every_seconds=0.1",
    "model.n_heads=2",
)
SWEEP = (*FIXED, "model.n_layers=1,2", "seed=0,1,2")


def seen(project: Path) -> dict[Path, int]:
    """Return the number of tokens that each stored run has seen at its last evaluation."""
    found = {}
    for log in project.glob("runs/*/log.jsonl"):
        lines = [line for line in log.read_text().splitlines() if line.endswith("}")]
        found[log.parent] = json.loads(lines[-1])["tokens_seen"] if lines else 0
    return found


def finished(project: Path) -> set[Path]:
    """Return the runs that have a manifest, which is written last."""
    return {manifest.parent for manifest in project.glob(f"runs/*/{MANIFEST}")}


def trainers(project: Path) -> dict[int, Path]:
    """Return the runs that are midway, by the process that trains each."""
    found = {}
    for run, tokens in seen(project).items():
        if 0 < tokens < TOKENS and (holder := (run / "lock").read_text()) and psutil.pid_exists(int(holder)):
            found[int(holder)] = run
    return found


def contents(project: Path) -> dict[str, bytes]:
    """Return every file of every run but the lock, which names the last process."""
    files = [p for run in seen(project) for p in run.rglob("*") if p.is_file() and p.name != "lock"]
    return {str(p.relative_to(project)): p.read_bytes() for p in files}


def until(what: str, found: Callable[[], T], seconds: float = 120) -> T:
    """Return the first true value of ``found``. Raises TimeoutError if there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.05)
    raise TimeoutError(f"expected {what} within {seconds} s, got nothing")
