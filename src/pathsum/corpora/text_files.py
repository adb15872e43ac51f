"""Documents of local text files."""

from __future__ import annotations

import codecs
import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

CHUNK = 1 << 20  # bytes read at a time
ESCAPES = {"\\0": "\0", "\\n": "\n", "\\t": "\t"}  # separators as they are typed on a command line


def text_documents(paths: Sequence[str], separator: str) -> Iterator[str]:
    r"""Yield the documents of the files, folders and globs in ``paths``.

    A folder means every file below it that is not hidden. Files are read once each, in sorted order. With ``separator``
    "" each file is one document; any other separator splits files (``\0``, ``\n`` and ``\t`` may be written with a
    backslash). Blank documents are skipped.

    Before the first document, raises one error that lists every missing path, every glob without a match, and every
    empty, binary or non-UTF-8 file. It is FileNotFoundError if a path is missing or a glob has no match, and ValueError
    otherwise.
    """
    for spelled, meant in ESCAPES.items():
        separator = separator.replace(spelled, meant)
    found = {pattern: _expand(pattern) for pattern in paths}
    ordered = sorted({path for files in found.values() for path in files})
    missing = [f"  - {pattern}: {_why_nothing(pattern)}" for pattern, files in found.items() if not files]
    unusable = [f"  - {path}: {why}" for path in ordered if (why := _unusable(path, allow_nul=separator == "\0"))]
    if missing or unusable:
        message = "\n".join(["corpus.paths: expected UTF-8 text files, got:", *missing, *unusable])
        raise FileNotFoundError(message) if missing else ValueError(message)
    for path in ordered:
        yield from (document for document in _pieces(path, separator) if document.strip())


def _expand(pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    candidates = [path] if path.exists() else [Path(p) for p in glob.glob(str(path), recursive=True)]
    return [f for c in candidates for f in (_under(c) if c.is_dir() else [c])]


def _under(folder: Path) -> list[Path]:
    return [
        f for f in folder.rglob("*") if f.is_file() and not any(p.startswith(".") for p in f.relative_to(folder).parts)
    ]


def _why_nothing(pattern: str) -> str:
    if Path(pattern).expanduser().is_dir():
        return "a folder without files; put text files there, or give another path"
    if glob.has_magic(pattern):
        return f"matches no file (searched from {os.getcwd()}); check the pattern, or quote it if the shell expanded it"
    return f"does not exist (searched from {os.getcwd()}); check the path"


def _unusable(path: Path, allow_nul: bool) -> str:
    """Return why a file cannot be read as text, or "" if it can. Reads the whole file once, in chunks."""
    try:
        if path.stat().st_size == 0:
            return "is empty; remove it, or leave it out of corpus.paths"
        decoder, offset = codecs.getincrementaldecoder("utf-8")(), 0
        with path.open("rb") as f:
            while True:
                chunk = f.read(CHUNK)
                if not allow_nul and (nul := chunk.find(b"\0")) >= 0:
                    return (
                        f"is binary (NUL at byte {offset + nul}); give text (unpack archives first), or "
                        r"corpus.separator='\0' if NUL separates its documents"
                    )
                pending = len(decoder.getstate()[0])
                try:
                    decoder.decode(chunk, final=not chunk)
                except UnicodeDecodeError as error:
                    at = offset - pending + error.start
                    return f"is not UTF-8 at byte {at}; convert it, e.g. `iconv -f latin1 -t utf8`, or leave it out"
                if not chunk:
                    return ""
                offset += len(chunk)
    except OSError as error:
        return f"cannot be read ({error.strerror}); make it readable, or leave it out"


def _pieces(path: Path, separator: str) -> Iterator[str]:
    """Yield the documents of one file. With a separator, memory is bounded by the longest document."""
    with path.open(encoding="utf-8", newline="") as f:
        if not separator:
            yield f.read()
            return
        rest = ""
        while chunk := f.read(CHUNK):
            *whole, rest = (rest + chunk).split(separator)
            yield from whole
        yield rest
