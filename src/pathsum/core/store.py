"""The store: folders of results, each named by a fingerprint of all that determines it, and used only while its files
match its manifest, which is written last."""

import ast
import fcntl
import functools
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pathsum.core.manifest import LOCK, MANIFEST, damage, read_manifest

SRC = Path(__file__).resolve().parents[2]
STATED = {"pathsum", "pathsum.config"}  # names of the public interface; checks of settings, which are facts themselves
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)  # they can have a docstring


def fingerprint(*modules: str, **facts: Any) -> str:
    """Return a hash, in 16 hexadecimal digits, of ``facts`` (values that JSON can hold), of the version of torch, and
    of the code of ``modules`` with all that they import of this package, without comments and docstrings."""
    about = {**facts, "code": _code(modules), "torch": version("torch")}
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def closure(modules: Sequence[str]) -> dict[str, Path]:
    """Return the files of ``modules`` and of those of this package that they import, directly or not, by name. A
    subpackage that is imported as a whole stands for all of its modules."""
    found: dict[str, Path] = {}
    left = list(modules)
    while left:
        name = left.pop()
        if name in found or name in STATED or not name.startswith("pathsum") or not (path := _file(name)):
            continue
        found[name] = path
        left.append(name.rpartition(".")[0])
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                for name in (alias.name for alias in node.names):
                    left += [name, *(f"{name}.{path.stem}" for path in SRC.joinpath(*name.split(".")).glob("[!_]*.py"))]
            elif isinstance(node, ast.ImportFrom) and node.module:
                left += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def _file(module: str) -> Path | None:
    base = SRC.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@functools.cache
def _code(modules: Sequence[str]) -> str:
    files = closure(modules)
    return hashlib.sha256(b"".join(name.encode() + _statements(files[name]) for name in sorted(files))).hexdigest()


def _statements(path: Path) -> bytes:
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree).encode()


@contextmanager
def held(path: Path, work: str) -> Iterator[None]:
    """Hold a lock on the file ``path`` during the block. If another process holds it, say that it does ``work``, and
    wait. The operating system releases a lock when the process that holds it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read() or "unknown"
            print(f"pathsum: waiting for process {holder}, which {work}", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def locked(entry: Path) -> AbstractContextManager[None]:
    """Lock ``entry`` during a ``with`` block. If another process holds the lock, wait for it."""
    return held(entry / LOCK, f"makes {entry.name}")


def finished(entry: Path) -> bool:
    """Return whether ``entry`` has a manifest with its fingerprint, and no file in the manifest has changed."""
    return not damage(entry, entry.name)


def link(entry: Path, folder: Path) -> None:
    """Replace ``folder`` by links to the files of a whole ``entry``, or by copies on another disk."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in (*read_manifest(entry)[0], MANIFEST):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(entry / name, folder / name)
        except OSError:
            shutil.copyfile(entry / name, folder / name)


def publish(folder: Path, entries: Mapping[str, Path]) -> None:
    """Replace ``folder`` by links to the ``entries``, by name. Raises ValueError, after the others are linked, if some
    are not whole."""
    whole = {name: entry for name, entry in entries.items() if finished(entry)}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, entry in whole.items():
        link(entry, folder / name)
    if missing := [name for name in entries if name not in whole]:
        raise ValueError(
            f"{folder}: expected {len(entries)} models, got all but {', '.join(missing)}, whose errors are above; the "
            "same command makes only these"
        )


def keep(folder: Path, store: Path) -> None:
    """Link the whole entries in ``folder``, such as those of `dvc pull`, into the ``store`` if it lacks them."""
    for entry in folder.glob("*"):
        with suppress(OSError, ValueError):
            name = read_manifest(entry)[1]
            if name and not (store / name).exists() and not damage(entry):
                link(entry, store / name)
