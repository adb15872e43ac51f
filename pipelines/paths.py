"""Paths of stored files, access to params.yaml, and the context in which every stage runs."""

from __future__ import annotations

import difflib
import errno
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PARAMS = Path("params.yaml")
GRAPH = Path("dvc.yaml")
TOKENS = Path("data/tokens")
STATISTICS = Path("data/statistics")
CHECKED = Path("data/checked")
SYNTHETIC = Path("data/synthetic_models.json")  # seeds, rotations and models of the calibration
PREREGISTERED = Path("conf/claims.yaml")
REFERENCE_RUN = Path("conf/reference_run.yaml")
PREREGISTRATION = Path("data/preregistration.json")  # conf/claims.yaml after the check stage
RUNS = Path("runs")  # the store, with training runs by fingerprint
RECORDS = RUNS / "records"  # and records of models by fingerprint
MODELS = Path("models")
CIRCUITS = Path("circuits")
CALIBRATION = Path("data/calibration.parquet")
COVERAGE = Path("data/coverage.parquet")
CLAIMS = Path("data/claims.json")
REPORTS = Path("reports")
YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml if available, ten times as fast as PyYAML's own parser
THREADS = 2  # the last digits of extraction depend on the number of threads; the weights do not
MISTAKES = (ValueError, OSError, ImportError, MemoryError, BrokenExecutor)  # told in one message, without a traceback
EXTRAS = {"ray": "ray", "submitit": "launchers", "wandb_workspaces": "dashboard"}  # which extra installs a package


def params(folder: Path = Path()) -> dict[str, Any]:
    """Return the content of params.yaml in ``folder``."""
    if not (folder / PARAMS).is_file():
        raise FileNotFoundError("expected params.yaml in this folder; run `make params` in the repository's root")
    try:
        values = read_yaml(folder / PARAMS)
    except ValueError as error:
        raise ValueError(f"{error}, or run `make params` to write it again") from error
    if not isinstance(values, dict):
        raise ValueError(f"{PARAMS}: expected the sections that `make params` writes, got no section; run it again")
    try:
        json.dumps(values, default=str, skipkeys=True)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{PARAMS}: expected values, got one that contains itself; run `make params` again") from error
    return values


def section(values: dict[str, Any], *path: str) -> Any:
    """Return the part of params.yaml at ``path``, a sequence of keys."""
    found: Any = values
    for depth, key in enumerate(path):
        if not isinstance(found, dict) or found.get(key) is None:
            raise ValueError(
                f"{PARAMS}: expected the key {'.'.join(path[: depth + 1])}, got none; run `make params` to write it"
            )
        found = found[key]
    return found


def model_of(arguments: Sequence[str], models: Sequence[str]) -> str:
    """Return the only argument, the name of one of the ``models``. If the command line asks for help, print it."""
    show_help(sys.modules["__main__"].__doc__)
    if len(arguments) != 1 or arguments[0] not in models:
        near = difflib.get_close_matches(" ".join(arguments), models, n=1)
        raise ValueError(
            f"expected the name of one model of params.yaml, got {' '.join(arguments) or 'none'}; "
            + (f"did you mean {near[0]}?" if near else f"it has {', '.join(models)}")
        )
    return arguments[0]


def show_help(text: str | None) -> None:
    """If the command line asks for help, print ``text``, the docstring of the command, and exit."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((text or "").strip())
        sys.exit()


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file. Raises ValueError, with the place of the error, if it is not YAML."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=YAML)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: not UTF-8, or a date such as 2026-02-30
        raise ValueError(f"{path}: expected YAML, got something else ({error}); correct the file") from error


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
    except Exception as error:
        if not isinstance(error, MISTAKES) and not isinstance(error, more_mistakes()):
            raise
        print(f"\nerror: {_escaped(message(error))}", file=sys.stderr)
        raise SystemExit(1) from error


def message(error: Exception) -> str:
    """Return the message of an error. It says what to do about a file or package, a killed process, or low memory."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"the disk of {Path.cwd()} is full; make room and run the same command again to go on"
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"expected the file {error.filename}, found none; `make repro` writes every file that a stage reads"
    if isinstance(error, OSError) and error.filename and error.errno:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return f"expected the package {error.name}, found none; run `pip install 'pathsum[{EXTRAS[error.name]}]'`"
    if isinstance(error, BrokenExecutor):
        return "a process of this stage was ended, as the system does when memory is short; run the same command again"
    if isinstance(error, MemoryError):
        return f"expected more free memory ({error}); lower train.batch, model.n_ctx or tokenizer.d_vocab, or free some"
    return str(error)


def _escaped(text: str) -> str:
    """Return ``text`` with control characters escaped. Names in foreign weights and texts may hold some."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def more_mistakes() -> tuple[type[Exception], ...]:
    """Return the types of mistakes whose import needs torch. They are checked last, because memory may be short."""
    from safetensors import SafetensorError

    from pathsum.training.loop import TrainingDiverged

    return SafetensorError, TrainingDiverged
