"""The manifest of a folder: the sha256 of each file, a name for the content, and a sha256 over both. It is written
last, so a folder without a manifest is incomplete."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pathsum.core.storage import write_json

MANIFEST, LOCK = "manifest.json", "lock"


def sha256(path: Path) -> str:
    """Return the sha256 of the content of the file ``path``, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path, hashes: Mapping[str, str] | None = None, name: str = "") -> None:
    """Write the manifest of ``folder``: the ``hashes`` of its files by relative path, and a ``name`` for their
    content."""
    if hashes is None:
        files = [
            p for p in folder.rglob("*") if p.is_file() and p.name not in (MANIFEST, LOCK) and p.suffix != ".draft"
        ]
        hashes = {p.relative_to(folder).as_posix(): sha256(p) for p in files}
    write_json(folder / MANIFEST, {"files": dict(hashes), "name": name, "sha256": _of_both(hashes, name)})


def _of_both(hashes: Mapping[str, str], name: str) -> str:
    return hashlib.sha256(json.dumps([name, hashes], sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> tuple[dict[str, str], str]:
    """Return the hashes that the manifest lists, and its name."""
    match json.loads((folder / MANIFEST).read_bytes()):
        case {"files": dict(hashes), "name": str(name), "sha256": str(own)} if own == _of_both(hashes, name):
            return hashes, name
    raise ValueError(f"{folder / MANIFEST}: expected the hashes of files and of their list, got something else")


def damage(folder: Path, name: str | None = None) -> str:
    """Return a description of the first difference between ``folder`` and its manifest, or "" if there is none."""
    try:
        listed, own = read_manifest(folder)
    except FileNotFoundError:
        return f"{MANIFEST} is missing"
    except ValueError:
        return f"{MANIFEST} is damaged"
    if name not in (None, own):
        return f"{MANIFEST} is that of {own or 'another folder'}"
    for file, expected in listed.items():
        if not (folder / file).is_file():
            return f"{file} is missing"
        if sha256(folder / file) != expected:
            return f"{file} has changed since it was written"
    return ""


def require_whole(folder: Path) -> None:
    """Raise ValueError if the manifest of ``folder``, or a file that it lists, is missing or has changed."""
    if found := damage(folder):
        raise ValueError(f"{folder}: {found}; delete this folder and run `make repro`, which makes it again")
