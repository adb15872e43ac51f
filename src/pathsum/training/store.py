"""The run store: one folder per training run, named by a hash of what determines its result.

    runs/<fingerprint>/cell.json  device.json  log.jsonl  checkpoints/<step>.safetensors  state.safetensors  lock

Sweeps and `dvc repro` share the store. Files are written atomically. The operating system releases a lock when the
process that holds it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from pathsum.config import CellConfig
from pathsum.core.storage import read_lines, write_whole
from pathsum.probes.evaluation import Evaluation


class RunBusy(RuntimeError):
    """Raised when another process is training the run."""


def fingerprint(cell: CellConfig, data_hash: str, code: Sequence[Path]) -> str:
    """Return a hash of what the weights depend on: configuration, tokens, the code in the folders ``code``, torch's
    version."""
    source = hashlib.sha256()
    for folder in code:
        for path in sorted(folder.rglob("*.py")):
            source.update(f"{folder.name}/{path.relative_to(folder).as_posix()}".encode() + path.read_bytes())
    facts = {"cell": cell.model_dump(), "data": data_hash, "code": source.hexdigest(), "torch": torch.__version__}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def locked(folder: Path, wait: bool) -> Iterator[None]:
    """Lock ``folder`` for this process. If another process holds the lock, wait, or raise RunBusy with its process
    id."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read() or "unknown"
            if not wait:
                raise RunBusy(
                    f"{folder}: process {holder} is training this run; wait for it, or stop it (kill {holder}) "
                    "and run again: training goes on from its last state"
                ) from None
            print(f"{folder.name}: waiting for process {holder}, which trains the same run", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def require_space(folder: Path, size: int) -> None:
    """Raise OSError if the disk of ``folder`` has fewer than ``size`` bytes left. Call it before any work."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OSError(
            f"{folder}: expected {size / 1e6:,.0f} MB of free disk for the checkpoints, got {free / 1e6:,.0f} MB; "
            "make room, or lower train.n_linear_evals; nothing finished is lost"
        )


def adopt(run: Path, folder: Path) -> None:
    """Copy the checkpoints, the log and the records of a finished run to ``folder``, the output of a stage."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(run / "checkpoints", folder / "checkpoints")
    for name in ("log.jsonl", "cell.json", "device.json"):
        shutil.copyfile(run / name, folder / name)


def rewind_log(path: Path, step: int) -> None:
    """Remove the evaluations after ``step`` from the log. A resumed run repeats them."""
    if path.exists():
        kept = [
            line for line in path.read_text().splitlines() if line.endswith("}") and json.loads(line)["step"] <= step
        ]
        write_whole(path, "".join(f"{line}\n" for line in kept).encode())


def finished(run: Path, steps: int) -> bool:
    """Return whether ``run`` has its last evaluation and its last checkpoint."""
    if not (run / "log.jsonl").exists() or not (run / "checkpoints" / f"{steps:08d}.safetensors").exists():
        return False
    try:
        log = read_lines(run / "log.jsonl", Evaluation)
    except ValueError:
        return False  # a half-written line: the run was killed there
    return bool(log) and log[-1].step == steps
