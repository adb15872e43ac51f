"""Paths of stored files, access to params.yaml, and the context in which every stage runs."""

import errno
import os
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PARAMS = Path("params.yaml")
TOKENS = Path("data/tokens")
STATISTICS = Path("data/statistics")
SYNTHETIC = Path("data/synthetic_models.json")  # seeds, rotations and models of the calibration
PREREGISTERED = Path("conf/claims.yaml")
REFERENCE_RUN = Path("conf/reference_run.yaml")
PREREGISTRATION = Path("data/preregistration.json")  # conf/claims.yaml after the check stage
RUNS = Path("runs")  # the store, with training runs by fingerprint
RECORDS = RUNS / "records"  # and records of models by fingerprint
MODELS = Path("models")
CIRCUITS = Path("circuits")
CALIBRATION = Path("reports/calibration")  # committed, with its fingerprint
DETECTORS, COVERAGE = "detectors.jsonl", "coverage.jsonl"  # in it
CLAIMS = Path("data/claims.json")
REPORTS = Path("reports")
JOBS = "PATHSUM_JOBS"  # environment variable: number of models at a time; with 1, one process draws the report
THREADS = 2  # the last digits of extraction depend on the number of threads; the weights do not
MISTAKES = (ValueError, OSError, ImportError, MemoryError, BrokenExecutor)  # told in one message, without a traceback
EXTRAS = {"ray": "ray", "submitit": "launchers", "wandb_workspaces": "dashboard"}  # which extra installs a package


def params(folder: Path = Path()) -> dict[str, Any]:
    """Return the content of params.yaml in ``folder``."""
    if not (folder / PARAMS).is_file():
        raise FileNotFoundError("expected params.yaml in this folder; run `make params` in the repository's root")
    values = read_yaml(folder / PARAMS)
    if not isinstance(values, dict):
        raise ValueError(f"{PARAMS}: expected the sections that `make params` writes, got no section; run it again")
    return values


def section(values: dict[str, Any], *path: str) -> Any:
    """Return the part of params.yaml at ``path``, a sequence of keys."""
    found: Any = values
    for depth, key in enumerate(path, start=1):
        if not isinstance(found, dict) or found.get(key) is None:
            raise ValueError(f"{PARAMS}: expected the key {'.'.join(path[:depth])}, got none; run `make params`")
        found = found[key]
    return found


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file. Raises ValueError, with the place of the error, if it is not YAML."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml if available, which is ten times as fast
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, or a date such as 2026-02-30
        raise ValueError(f"{path}: expected YAML, got something else ({error}); run `make params` again") from error


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def stage(threads: int, *, arguments: bool = True) -> Iterator[None]:
    """Run a block as a stage, with a fixed number of torch threads, so that results are the same bit for bit."""
    try:
        if not arguments and len(sys.argv) > 1:
            raise ValueError(f"expected no arguments, got {' '.join(sys.argv[1:])}; its settings are in conf/")
        if threads:
            import torch

            from pathsum.core.memory import keep_freed

            torch.set_num_threads(threads)
            keep_freed(2**28)
        yield
    except MISTAKES as error:
        text = message(error)  # names in foreign weights and texts may hold control characters
        shown = "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
        print(f"\nerror: {shown}", file=sys.stderr)
        raise SystemExit(1) from error


def message(error: Exception) -> str:
    """Return the message of an error. It says what to do about a file or package, a killed process, or low memory."""
    match error:
        case OSError(errno=errno.ENOSPC):
            return f"the disk of {Path.cwd()} is full; make room and run the same command again to go on"
        case FileNotFoundError(filename=str() | bytes() | Path() as name):
            return f"expected the file {name!s}, found none; `make repro` writes every file that a stage reads"
        case OSError(filename=str() | bytes() | Path() as name, strerror=str(why)):
            return f"{name!s}: {why}"
        case ModuleNotFoundError(name=str(name)) if name in EXTRAS:
            return f"expected the package {name}, found none; run `pip install 'pathsum[{EXTRAS[name]}]'`"
        case BrokenExecutor():
            return "a process was ended, as the system does when memory is short; run the same command again"
        case MemoryError():
            return f"expected more memory ({error}); lower train.batch, model.n_ctx or tokenizer.d_vocab, or free some"
    return str(error)
