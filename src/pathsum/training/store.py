"""A training run in the store: runs/<fingerprint>/cell.json  device.json  log.jsonl  checkpoints/<step>.safetensors

A finished run has a manifest. An unfinished one has saved states instead (training/state.py).
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from pathsum.core.manifest import MANIFEST, damage

LOG, CHECKPOINTS, ABOUT = "log.jsonl", "checkpoints", ("cell.json", "device.json")


def require_space(folder: Path, size: int) -> None:
    """Make ``folder``, and raise OSError if its disk has fewer than ``size`` bytes left. Call this before any work."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OSError(
            f"{folder}: expected {math.ceil(size / 1e6):,} MB of free disk for the checkpoints, got "
            f"{free // 10**6:,} MB; make room, or lower train.n_linear_evals; nothing finished is lost"
        )


def log_until(path: Path, step: int) -> bytes:
    """Return the intact lines of a log up to the evaluation at ``step``."""
    kept = b""
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        with suppress(ValueError, KeyError, TypeError):  # a line that is incomplete or damaged
            if line.endswith(b"\n") and 0 <= json.loads(line)["step"] <= step:
                kept += line
    return kept


def discard_damaged(run: Path) -> None:
    """Delete the manifest, log and checkpoints of a run that has a manifest."""
    if not (run / MANIFEST).exists():
        return
    print(f"{run}: {damage(run, run.name)}; this model is trained again", file=sys.stderr)
    (run / MANIFEST).unlink()
    (run / LOG).unlink(missing_ok=True)
    shutil.rmtree(run / CHECKPOINTS, ignore_errors=True)
