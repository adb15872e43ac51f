"""Repair the files of DVC before it reads them, so that neither a kill nor a damaged file stops a later run.

DVC rewrites dvc.lock and .dvc/tmp/rwlock in place, and a kill leaves empty folders and drafts in its run cache.
``mend`` repairs these. DVC also trusts, without hashing them, read-only objects of its cache, and outputs whose size
and time of modification are unchanged. ``drop_damaged`` deletes objects that no longer have their hash, and makes DVC
hash outputs that may have changed.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import re
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Set
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from pipelines.paths import CIRCUITS, MODELS, REPORTS, params, read_yaml

LOCK = Path("dvc.lock")
TMP = Path(".dvc/tmp")
COPY = TMP / "dvc.lock.gz"  # of the last dvc.lock that was whole; compressed, because gzip has a checksum
RWLOCK = TMP / "rwlock"  # which process reads or writes which file
OBJECTS = Path(".dvc/cache/files/md5")
RUN_CACHE = Path(".dvc/cache/runs")
INTACT = TMP / "intact.json"  # size and time of change of each stored file when its hash was last compared
OUTPUTS = (Path("data"), MODELS, CIRCUITS, REPORTS)
DRAFT = re.compile(r"\.[\w-]{22}\.tmp")  # the name that DVC gives to an incomplete copy
_LONG = 10  # seconds of waiting before a message


def mend() -> None:
    """Remove what a killed DVC has left. Keep a copy of dvc.lock; if DVC cannot read it, or if it is only the beginning
    of the last copy, put that copy back.

    Stages whose results in dvc.lock are wrong are dropped from it.
    """
    if not Path(".dvc").is_dir():
        return
    TMP.mkdir(exist_ok=True)
    with ExitStack() as locks:
        for name in ("lock", "rwlock.lock"):
            locks.enter_context(_locked(TMP / name))
        _mend_lock()
        _mend_rwlock()
        _mend_run_cache()
        for path in _outputs():
            if DRAFT.fullmatch(path.name) or (path.is_symlink() and not path.exists()):
                path.unlink(missing_ok=True)  # DVC was copying it from its cache, or what it leads to is gone


def drop_damaged() -> None:
    """Delete files of DVC's cache whose content does not have the hash in their name.

    Outputs that may have changed get a new time of modification, so that DVC hashes them again.
    """
    if not Path(".dvc").is_dir():
        return
    TMP.mkdir(exist_ok=True)
    known, intact, damaged = _intact(), {}, []
    with _locked(TMP / "lock"):  # under which DVC fills its cache
        for path in (*OBJECTS.glob("??/*"), *RUN_CACHE.glob("??/*/*")):
            times = _times(path)
            if known.get(str(path)) != times and not _has_its_hash(path):
                damaged.append(path)
                path.unlink()
            else:
                intact[str(path)] = times
    for path in _outputs():
        with suppress(FileNotFoundError):  # another process replaces it
            if known.get(str(path)) != _times(path):
                _renew(path)
            intact[str(path)] = _times(path)
    if damaged:
        _say(f"damaged files in .dvc/cache: {len(damaged)} are deleted, and made again where they are needed")
    if intact != known:
        _keep(intact)


def name_strangers(stages: Set[str]) -> None:
    """Name the files in the folders of results of ``stages`` that dvc.lock does not list: DVC removes them when it
    makes these results again."""
    strangers = []
    for name, made in _made():
        for out in made.get("outs", []) if name in stages else ():
            folder, key = Path(out["path"]), out.get("md5", "")
            if not key.endswith(".dir"):
                continue
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            try:
                listed = {entry["relpath"] for entry in json.loads((OBJECTS / key[:2] / key[2:]).read_text())}
            except (OSError, ValueError):  # the list is not in the cache; dvc.lock has the number of files
                if (more := len(files) - out.get("nfiles", len(files))) > 0:
                    strangers.append(f"{folder} ({more} of its files)")
            else:
                strangers += [str(path) for path in files if path.relative_to(folder).as_posix() not in listed]
    if strangers:
        more = f" and {len(strangers) - 5} more" if len(strangers) > 5 else ""
        _say(f"{', '.join(strangers[:5])}{more}: no results of a stage; removed when their folders are made again")


def _made() -> Iterable[tuple[str, dict[str, Any]]]:
    """Return the name of each stage of dvc.lock with what it has there. Nothing if there is no such file."""
    return (read_yaml(LOCK) if LOCK.exists() else {}).get("stages", {}).items()


def name_committed(stages: Set[str]) -> None:
    """Name each folder of results that was changed and then stored by `dvc commit`: DVC takes it for the result of its
    stage, and would put it back. ``stages`` are those out of date, whose results are made again anyway."""
    from pathsum.core.manifest import damage  # which takes time to import, and is rarely needed

    kept = [output / model for output in (MODELS, CIRCUITS) for model in params()["cells"]]
    for name, made in _made():
        folder = Path(made["outs"][0]["path"]) if made.get("outs") else Path()
        if name not in stages and folder in kept and folder.is_dir() and (found := damage(folder)):
            _say(
                f"{folder}: {found}, and dvc.lock has it so, as after `dvc commit`; "
                f"run `dvc repro --force --single-item {name}` to make it again"
            )


def note_outputs() -> None:
    """Record that DVC has just hashed all outputs, so that the next ``drop_damaged`` does not renew them."""
    intact = _intact()
    for path in _outputs():
        with suppress(FileNotFoundError):
            intact[str(path)] = _times(path)
    _keep(intact)


def _outputs() -> Iterator[Path]:
    """Yield the files of all outputs. Folders that another process replaces meanwhile are left out."""
    return (Path(folder, name) for output in OUTPUTS for folder, _, names in os.walk(output) for name in names)


def _renew(path: Path) -> None:
    """Make DVC hash a file again, even if the program that changed it has restored its time of modification."""
    try:
        os.utime(path)
    except OSError as error:  # which does not name the file
        raise OSError(error.errno, error.strerror, str(path)) from error


def _keep(intact: dict[str, list[int]]) -> None:
    _write(INTACT, json.dumps(intact).encode())


def whole(path: Path) -> bool:
    """Return whether DVC can read the lock file ``path``."""
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA  # takes 0.3 s, so it is imported only where it is needed
    from voluptuous import Invalid

    try:
        stages = COMPILED_LOCKFILE_SCHEMA(read_yaml(path)).get("stages", {})
    except (OSError, ValueError, Invalid):
        return False
    listed = (path for stage in stages.values() for path in (*stage.get("deps", ()), *stage.get("outs", ())))
    return all(path.get("hash", "md5") == "md5" for path in listed)  # with another, DVC fails and does not say why


def _mend_lock() -> None:
    copy, content = _copy(), LOCK.read_bytes() if LOCK.exists() else b""
    if copy and content == copy:
        return
    cut = bool(copy and content and copy.startswith(content))  # such a file can be valid YAML with fewer stages
    if whole(LOCK) and not cut:
        _drop_strangers()
        _write(COPY, gzip.compress(LOCK.read_bytes()))
        return
    if damaged := LOCK.exists():
        LOCK.replace(TMP / "dvc.lock.damaged")
    if copy:
        _write(LOCK, copy)
        state = "cut" if cut else "damaged" if damaged else "missing"
        _say(f"dvc.lock was {state}; its last whole copy is back. Results since then come from the cache")
    elif damaged:
        _say("dvc.lock was damaged and is set aside in .dvc/tmp. Results come from the cache or are made again")


def _drop_strangers() -> None:
    """Drop each stage of dvc.lock whose dependencies were used in a run here, but with other results or sizes, as after
    a wrong merge. The run cache lists the dependencies and results of these runs."""
    wrong = []
    for name, stage in read_yaml(LOCK).get("stages", {}).items():
        key, value = _hashes(stage)
        made = RUN_CACHE / key[:2] / key
        if made.exists() and not _gave(made / value, stage):
            wrong.append(name)
    if wrong:
        from dvc.utils.serialize import modify_yaml

        with modify_yaml(LOCK) as content:
            for name in wrong:
                del content["stages"][name]
        names = ", ".join(wrong)
        _say(f"dvc.lock lists results that {names} did not give; the right ones come from the cache or are made")


def _gave(run: Path, stage: dict[str, Any]) -> bool:
    """Return whether the run cache has the file ``run``, with the dependencies and results of ``stage``. A damaged file
    counts as such a one; ``drop_damaged`` deletes it."""
    if not run.exists():
        return False
    listed = _intact_run(run)
    return listed is None or all(listed.get(key) == stage.get(key) for key in ("deps", "outs"))


def _intact_run(path: Path) -> dict[str, Any] | None:
    """Return what a file of the run cache lists, or None if that does not have the hashes in its path."""
    try:
        listed: dict[str, Any] = read_yaml(path)
        return listed if _hashes(listed) == (path.parent.name, path.name) else None
    except (ValueError, AttributeError, TypeError, KeyError):
        return None


def _hashes(stage: dict[str, Any]) -> tuple[str, str]:
    """Return two hashes of a stage: of its dependencies, and of its dependencies and results.

    In the run cache, the first names the stage's folder, and the second its entry in this folder.
    """
    from dvc.utils import dict_sha256

    paths = [out["path"] for out in stage.get("outs", [])]
    key, value = (dict_sha256(about, exclude=["size", "nfiles"]) for about in (stage | {"outs": paths}, stage))
    return key, value


def _copy() -> bytes | None:
    """Return the last dvc.lock that was whole, or None if there is no undamaged copy."""
    try:
        return gzip.decompress(COPY.read_bytes()) or None
    except (OSError, EOFError, zlib.error):
        return None


def _mend_rwlock() -> None:
    """Drop the entries of processes that have ended, even if another program now has the same process id. Drop all
    entries if the file is damaged."""
    try:
        held = json.loads(RWLOCK.read_text())
        kept = {
            "write": {path: one for path, one in held.get("write", {}).items() if _runs_dvc(one)},
            "read": {path: some for path, all_ in held.get("read", {}).items() if (some := [*filter(_runs_dvc, all_)])},
        }
    except FileNotFoundError:
        return
    except (ValueError, AttributeError, TypeError, KeyError):
        held, kept = None, {}
    if kept != held:
        RWLOCK.write_text(json.dumps(kept))


def _runs_dvc(holder: dict[str, Any]) -> bool:
    import psutil

    try:
        process = psutil.Process(holder["pid"])
        return process.status() != psutil.STATUS_ZOMBIE and any("dvc" in word for word in process.cmdline())
    except psutil.Error:
        return False


def _mend_run_cache() -> None:
    """Remove drafts and empty folders, on which DVC fails."""
    for path in RUN_CACHE.glob("??/*/*"):
        if not re.fullmatch("[0-9a-f]{64}", path.name):
            path.unlink()
    for folder in RUN_CACHE.glob("??/*"):
        with suppress(OSError):
            folder.rmdir()  # fails unless it is empty


def _has_its_hash(path: Path) -> bool:
    if RUN_CACHE in path.parents:
        return _intact_run(path) is not None
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    return digest == (path.parent.name + path.name).removesuffix(".dir")


def _times(path: Path) -> list[int]:
    about = path.stat()
    return [about.st_size, about.st_ctime_ns]


def _intact() -> dict[str, list[int]]:
    with suppress(OSError, ValueError):
        found = json.loads(INTACT.read_text())
        if isinstance(found, dict):
            return found
    return {}


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically. ``core.storage`` does the same, but importing it takes longer than a whole call
    that has nothing to repair."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    draft.write_bytes(content)
    draft.replace(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock of DVC. Wait for a process that holds it."""
    with path.open("a") as file:
        begun, told = time.monotonic(), False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told and time.monotonic() - begun > _LONG:
                    told = True
                    _say(f"waiting for another DVC process, which holds {path}")
                time.sleep(0.1)
        yield


def _say(message: str) -> None:
    print(f"pathsum: {message}", file=sys.stderr)
