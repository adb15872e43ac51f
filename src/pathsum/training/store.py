"""The run store: one folder per run, named by what determines its result, shared by sweeps and `dvc repro`.

    runs/<fingerprint>/cell.json  device.json  log.jsonl  checkpoints/<step>.safetensors  state.safetensors  lock

Everything is written atomically. The operating system releases the lock when its process ends.
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
    """Another process is training this run."""


def fingerprint(cell: CellConfig, data_hash: str, code: Sequence[Path]) -> str:
    """Hash what a run's weights depend on: its configuration, its tokens, the code in the folders ``code``, torch."""
    source = hashlib.sha256()
    for folder in code:
        for path in sorted(folder.rglob("*.py")):
            source.update(f"{folder.name}/{path.relative_to(folder).as_posix()}".encode() + path.read_bytes())
    facts = {"cell": cell.model_dump(), "data": data_hash, "code": source.hexdigest(), "torch": torch.__version__}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def locked(folder: Path, wait: bool) -> Iterator[None]:
    """Lock ``folder`` for this process. If another process holds the lock, wait or raise RunBusy with its number."""
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
    """Raise OSError, before any work, if the disk of ``folder`` has fewer than ``size`` bytes left."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OSError(
            f"{folder}: expected {size / 1e6:,.0f} MB of free disk for the checkpoints, got {free / 1e6:,.0f} MB; "
            "make room, or lower train.n_linear_evals; nothing finished is lost"
        )


def adopt(run: Path, folder: Path) -> None:
    """Copy a finished run's checkpoints and log to ``folder`` (a stage's output)."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(run / "checkpoints", folder / "checkpoints")
    for name in ("log.jsonl", "cell.json", "device.json"):
        shutil.copyfile(run / name, folder / name)


def rewind_log(path: Path, step: int) -> None:
    """Drop the evaluations after ``step``, which a resumed run makes again."""
    if path.exists():
        kept = [
            line for line in path.read_text().splitlines() if line.endswith("}") and json.loads(line)["step"] <= step
        ]
        write_whole(path, "".join(f"{line}\n" for line in kept).encode())


def finished(run: Path, steps: int) -> bool:
    """Tell whether ``run`` has its last evaluation and checkpoint."""
    if not (run / "log.jsonl").exists() or not (run / "checkpoints" / f"{steps:08d}.safetensors").exists():
        return False
    try:
        log = read_lines(run / "log.jsonl", Evaluation)
    except ValueError:
        return False  # a half-written line: the run was killed there
    return bool(log) and log[-1].step == steps
