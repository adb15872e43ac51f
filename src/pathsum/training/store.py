"""The run store: one folder per training run, named by a hash (fingerprint) of all that determines the weights.

    runs/<fingerprint>/cell.json  device.json  log.jsonl  checkpoints/<step>.safetensors  manifest.json  lock

Sweeps and `dvc repro` share the store. Files are written atomically. A finished run has a manifest with the fingerprint
and the hashes of the files. The run is used only while its files match these hashes. An unfinished run has saved states
instead (training/state.py).
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from pathsum.config import CellConfig
from pathsum.core.locks import held
from pathsum.core.manifest import MANIFEST, damage, read_manifest

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)  # they can have a docstring
LOG, CHECKPOINTS, ABOUT = "log.jsonl", "checkpoints", ("cell.json", "device.json")


class RunBusy(RuntimeError):
    """Raised when another process is training the run."""


def fingerprint(cell: CellConfig, data_hash: str, code: Sequence[Path]) -> str:
    """Return a hash, in 16 hexadecimal digits, of what the weights depend on: configuration, tokens (``data_hash``),
    Python files in the folders ``code``, and the version of torch. Comments and docstrings do not change it."""
    source = hashlib.sha256()
    for folder in code:
        for path in sorted(folder.rglob("*.py")):
            source.update(f"{folder.name}/{path.relative_to(folder).as_posix()}".encode() + _statements(path))
    facts = {"cell": cell.model_dump(), "data": data_hash, "code": source.hexdigest(), "torch": torch.__version__}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _statements(path: Path) -> bytes:
    """Return the code of a Python file without comments and docstrings, or all of a file that does not parse."""
    content = path.read_bytes()
    try:
        tree = ast.parse(content)
    except SyntaxError:
        return content
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree).encode()


@contextmanager
def locked(folder: Path, wait: bool) -> Iterator[None]:
    """Lock ``folder`` during the ``with`` block. If another process holds the lock, wait for it. With ``wait`` false,
    raise RunBusy instead, with the id of that process."""

    def busy(holder: str) -> None:
        if not wait:
            raise RunBusy(
                f"{folder}: process {holder} is training this run; wait for it, or stop it (kill {holder}) "
                "and run again: training goes on from its last state"
            )
        print(f"{folder.name}: waiting for process {holder}, which trains the same run", file=sys.stderr)

    with held(folder / "lock", busy):
        yield


def require_space(folder: Path, size: int) -> None:
    """Make ``folder``, and raise OSError if its disk has fewer than ``size`` bytes left. Call this before any work."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OSError(
            f"{folder}: expected {math.ceil(size / 1e6):,} MB of free disk for the checkpoints, got "
            f"{free // 10**6:,} MB; make room, or lower train.n_linear_evals; nothing finished is lost"
        )


def adopt(run: Path, folder: Path) -> None:
    """Replace ``folder``, the output of a stage, by a copy of the manifest of a finished run and of the files that it
    lists. Raises ValueError, and keeps ``folder``, if ``run`` has no manifest or differs from it. Raises ValueError if
    the copy differs."""
    _require_whole(run, run)
    files = read_manifest(run)[0]
    shutil.rmtree(folder, ignore_errors=True)
    for name in (*files, MANIFEST):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run / name, folder / name)
    _require_whole(folder, run)


def _require_whole(folder: Path, run: Path) -> None:
    """Raise ValueError unless ``folder`` holds the files of ``run`` as the manifest lists them."""
    if found := damage(folder, run.name):
        raise ValueError(f"{run}: {found}; run the same command again, which makes this model again")


def log_until(path: Path, step: int) -> bytes:
    """Return the intact lines of a log up to the evaluation at ``step``. Empty if ``step`` is negative or there is no
    log at ``path``."""
    kept = b""
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        with suppress(ValueError, KeyError, TypeError):  # a line that is incomplete or damaged
            if line.endswith(b"\n") and 0 <= json.loads(line)["step"] <= step:
                kept += line
    return kept


def finished(run: Path) -> bool:
    """Return whether ``run`` has a manifest with its fingerprint, and no file in the manifest has changed."""
    return not damage(run, run.name)


def discard_damaged(run: Path) -> None:
    """Delete the manifest, log and checkpoints of a run that has a manifest. Call this only if the run is not
    ``finished``: a file has then changed since the manifest was written, or the manifest is that of another run."""
    if not (run / MANIFEST).exists():
        return
    print(f"{run}: {damage(run, run.name)}; this model is trained again", file=sys.stderr)
    (run / MANIFEST).unlink()
    (run / LOG).unlink(missing_ok=True)
    shutil.rmtree(run / CHECKPOINTS, ignore_errors=True)
