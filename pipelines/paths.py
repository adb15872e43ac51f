"""Paths of stored files, access to params.yaml, and the context in which every stage runs."""

from __future__ import annotations

import difflib
import errno
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from pipelines.interrupts import INTERRUPTED

ROOT = Path(__file__).resolve().parents[1]
PARAMS = Path("params.yaml")
GRAPH = Path("dvc.yaml")
TOKENS = Path("data/tokens")
STATISTICS = Path("data/statistics")
CHECKED = Path("data/checked")
CONFIG = Path("data/config")
PREREGISTERED = Path("conf/claims.yaml")
NOT_UTF_8 = re.compile("[\ud800-\udfff]")  # how Python reads bytes of a command line that are not UTF-8
REFERENCE_RUN = Path("conf/reference_run.yaml")
PREREGISTRATION = Path("data/preregistration.json")  # conf/claims.yaml after the check stage
RUNS = Path("runs")
MODELS = Path("models")
CIRCUITS = Path("circuits")
CALIBRATION = Path("data/calibration.parquet")
COVERAGE = Path("data/coverage.parquet")
CLAIMS = Path("data/claims.json")
REPORTS = Path("reports")
YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml if available, ten times as fast as PyYAML's own parser
THREADS = 2  # the last digits of extraction depend on the number of threads; the weights do not
SO_FAR = "PATHSUM_SO_FAR"  # environment variable: the stages out of date, for a report before all models are made
MISTAKES = (ValueError, OSError, ImportError, MemoryError, BrokenExecutor)  # told in one message, without a traceback
FULL = "the disk {} is full; make room and run the same command again to go on"
EXTRAS = {"ray": "ray", "submitit": "launchers", "wandb_workspaces": "dashboard"}  # which extra installs a package


def params(folder: Path = Path()) -> dict[str, Any]:
    """Return the content of params.yaml in ``folder``.

    Raises FileNotFoundError if there is no such file, and ValueError if it is not a configuration.
    """
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
    """Return the part of params.yaml at ``path``, a sequence of keys. Raises ValueError if a key or its value is
    missing, or if there are no models under ``cells``."""
    found: Any = values
    for depth, key in enumerate(path):
        if not isinstance(found, dict) or found.get(key) is None:
            raise ValueError(
                f"{PARAMS}: expected the key {'.'.join(path[: depth + 1])}, got none; run `make params` to write it"
            )
        found = found[key]
    if path == ("cells",) and not (found and isinstance(found, dict)):
        raise ValueError(f"{PARAMS}: expected models by name under cells, got none; run `make params` to write it")
    return found


def model_of(arguments: Sequence[str], values: dict[str, Any]) -> str:
    """Return the only argument, the name of a model. Raises ValueError unless params.yaml (``values``) has this model.

    If the command line asks for help, print the docstring of the command, and exit.
    """
    show_help(sys.modules["__main__"].__doc__)
    cells = section(values, "cells")
    if len(arguments) != 1 or arguments[0] not in cells:
        near = difflib.get_close_matches(" ".join(arguments), cells, n=1)
        raise ValueError(
            f"expected the name of one model of params.yaml, got {' '.join(arguments) or 'none'}; "
            + (f"did you mean {near[0]}?" if near else f"it has {', '.join(cells)}")
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


def training_code() -> list[Path]:
    """Return the source folders on which the stage train depends in dvc.yaml.

    The fingerprint of a run includes the hash of these folders. Raises ValueError if dvc.yaml has no such stage.
    """
    try:
        deps = read_yaml(ROOT / GRAPH)["stages"]["train"]["do"]["deps"]
        return [ROOT / name for name in deps if name.startswith("src/")]
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{GRAPH}: expected the dependencies of the stage train, got none; put them back") from error


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def stage(threads: int, *, arguments: bool = True) -> Iterator[None]:
    """Run a block as a stage, with a fixed number of torch threads, so that results are the same bit for bit.

    If ``threads`` is 0, torch is not loaded. If ``arguments`` is false, a command line with arguments is refused. A
    mistake of the user, or too little memory or disk, ends the process with one message and exit code 1. An interrupt
    ends it without a message, with exit code 130. Neither prints a traceback; other errors do.
    """
    try:
        if not arguments and len(sys.argv) > 1:
            raise ValueError(f"expected no arguments, got {' '.join(sys.argv[1:])}; its settings are in conf/")
        if threads:
            import torch

            from pathsum.core.memory import keep_freed

            torch.set_num_threads(threads)
            keep_freed(2**28)
            os.environ["PYTHONSAFEPATH"] = "1"  # for workers; else they would run a user's own math.py in this folder
        if "torch" in sys.modules:
            leave_out_compiler()
        yield
        if sys.stdout:
            sys.stdout.flush()  # an error of the last line that is printed is told as well
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        if not isinstance(error, MISTAKES) and not isinstance(error, _more_mistakes()):
            raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            error = OSError(FULL.format("to which standard output goes" if unprintable() else f"of {Path.cwd()}"))
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            error = OSError("a file would be larger than `ulimit -f` allows; raise it and run the same command again")
        print(f"\nerror: {_escaped(message(error))}", file=sys.stderr)
        raise SystemExit(1) from error
    finally:
        os.environ.pop("PYTHONSAFEPATH", None)  # commands need this folder in their search path


def leave_out_compiler() -> None:
    """Let optimizers work without torch's compiler, which they import only to keep their methods out of it.

    That import takes 1.6 s of processor time. No stage compiles, and none needs the gradient of an update.
    """
    import torch
    from torch.optim import Adam, Optimizer

    for method in vars(Optimizer).values():
        if plain := getattr(method, "__wrapped__", None):
            setattr(plain, "__dynamo_disable", plain)  # what the method calls; unset, it imports the compiler
    Adam.step = torch.no_grad()(inspect.unwrap(Adam.step))  # type: ignore[method-assign]


def unprintable() -> bool:
    """Return whether standard output can take no more, as on a full disk. If so, later output is dropped."""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python would complain at its end
        return True
    return False


def message(error: Exception) -> str:
    """Return the message of an error. It says what to do about a file or package, a killed process, or low memory."""
    if isinstance(error, OSError) and error.filename and error.errno:
        return _about_file(error, Path(os.fsdecode(error.filename)))
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


def _about_file(error: OSError, path: Path) -> str:
    """Return what is wrong with the file ``path``, and what to do."""
    if error.errno == errno.ENAMETOOLONG:
        return f"expected a path that the system can open, got one that is too long: {str(path)[:60]}…"
    if isinstance(error, PermissionError) and (closed := _closed(path) or _closed(Path(os.path.realpath(path)))):
        return f"{closed}: {error.strerror}; make this folder accessible (chmod u+rwx), and run the same command again"
    if path.is_absolute() and Path.cwd() not in path.parents:
        return f"{path}: {error.strerror}; give a path that this command can read and write"
    path = path.relative_to(Path.cwd()) if path.is_absolute() else path
    if isinstance(error, FileNotFoundError) and (path.parts[:1] == ("conf",) or path == GRAPH):
        return f"expected the file {path}, found none; put it back, or run this in the root of the repository"
    if isinstance(error, FileNotFoundError):
        return f"expected the file {path}, found none; `make repro` writes every file that a stage reads"
    paths = (path, *path.parents)
    in_the_way = next((above for above in paths if os.path.exists(above) and not os.path.isdir(above)), path)
    if isinstance(error, NotADirectoryError | FileExistsError):
        return f"{path}: expected a folder at {in_the_way}, got a file; move it away and run the same command again"
    if isinstance(error, IsADirectoryError):
        return f"{path}: expected a file, got a folder; move it away and run the same command again"
    return f"{path}: {error.strerror}; make it readable and writable, and run the same command again"


def _closed(path: Path) -> Path | None:
    """Return the first folder above ``path`` that this user may not enter, or None."""
    return next((above for above in reversed(path.parents) if not os.access(above, os.X_OK, effective_ids=True)), None)


def _more_mistakes() -> tuple[type[Exception], ...]:
    """Return the types of mistakes whose import needs torch. They are checked last, because memory may be short."""
    from safetensors import SafetensorError

    from pathsum.training.loop import TrainingDiverged
    from pathsum.training.store import RunBusy

    return SafetensorError, TrainingDiverged, RunBusy
