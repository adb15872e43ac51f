"""Paths, parameters and the frame of every stage."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PARAMS = Path("params.yaml")
TOKENS = Path("data/tokens")
STATISTICS = Path("data/statistics")
CHECKED = Path("data/checked")
PREREGISTERED = Path("conf/claims.yaml")
PREREGISTRATION = Path("data/preregistration.json")  # the same, checked
RUNS = Path("runs")
MODELS = Path("models")
CIRCUITS = Path("circuits")
CALIBRATION = Path("data/calibration.parquet")
CLAIMS = Path("data/claims.json")
REPORTS = Path("reports")
INTERRUPTED = 130  # exit code, as shells have it
THREADS = 2  # extraction's last digits depend on them; the weights do not


def params(folder: Path = Path()) -> dict[str, Any]:
    """Read params.yaml."""
    if not (folder / PARAMS).exists():
        raise FileNotFoundError("expected params.yaml in this folder; run `make params` in the repository's root")
    values = yaml.safe_load((folder / PARAMS).read_text(encoding="utf-8"))
    assert isinstance(values, dict)
    return values


def training_code() -> list[Path]:
    """Return the folders that the train stage of dvc.yaml depends on, which the fingerprint of a run hashes."""
    deps = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]["train"]["do"]["deps"]
    return [ROOT / name for name in deps if name.startswith("src/")]


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def stage(threads: int) -> Iterator[None]:
    """Run a stage with a fixed number of threads for torch, so that its bits are the same; 0 where it needs no torch.

    A user's mistake ends it with one message, an interrupt with none, both without a traceback.
    """
    try:
        if threads:
            import torch

            torch.set_num_threads(threads)
        yield
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        if not isinstance(error, _mistakes()):
            raise
        print(f"\nerror: {error}", file=sys.stderr)
        raise SystemExit(1) from error


def _mistakes() -> tuple[type[Exception], ...]:
    from safetensors import SafetensorError

    from pathsum.training.loop import TrainingDiverged
    from pathsum.training.store import RunBusy

    return ValueError, OSError, ImportError, SafetensorError, TrainingDiverged, RunBusy
