"""Documents of local text files."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from pathsum.config import Corpus, Name
from pathsum.text.corpus import Source

CHUNK = 1 << 20  # characters read at a time
SHOWN = 20  # largest number of complaints that are listed
ESCAPES = {"\\0": "\0", "\\n": "\n", "\\r": "\r", "\\t": "\t"}  # separators as they are typed on a command line


class TextCorpus(Corpus):
    """Local text files, named by paths, folders or globs."""

    source: Literal["text"]
    paths: tuple[Name, ...] = Field(min_length=1)
    separator: str  # "" = one document per file


def text_documents(paths: Sequence[str], separator: str, where: str = "corpus.paths") -> Iterator[str]:
    r"""Yield the documents of the files, folders and globs in ``paths``. Blank documents are skipped.

    A folder stands for every file below it, except hidden files and files in hidden or linked folders. Leading parts of
    a glob that exist are taken literally, also ``notes [2024]``. Files come in sorted order, each once. A file is one
    document if ``separator`` is "", else the separator splits it. Raises ValueError, about ``where``, before the first
    document if a path names no file, if a file is empty or no UTF-8 text, or if the separator occurs in no file.
    """
    for spelled, meant in ESCAPES.items():
        separator = separator.replace(spelled, meant)
    found = {pattern: [file for path in matches(pattern) for file in _files(path)] for pattern in paths}
    files: dict[tuple[int, int], Path] = {}  # by identity, which links share
    for path in sorted({path for some in found.values() for path in some}):
        about = path.stat()
        files.setdefault((about.st_dev, about.st_ino), path)
    wrong = [f"{p}: names no file (hidden ones are not read) in {os.getcwd()}" for p, some in found.items() if not some]
    wrong += [f"{path}: {why}" for path in files.values() if (why := _unusable(path, separator == "\0"))]
    if wrong:
        more = [f"… and {len(wrong) - SHOWN} more"] if len(wrong) > SHOWN else []
        raise ValueError(f"{where}: expected UTF-8 text files, got:\n  - " + "\n  - ".join([*wrong[:SHOWN], *more]))
    if separator and not any(_has(path, separator) for path in files.values()):
        raise ValueError(f"corpus.separator: expected a string that occurs in the files, got {separator!r}")
    for path in files.values():
        yield from (document for document in _pieces(path, separator) if document.strip())


SOURCE = Source(TextCorpus, lambda config: text_documents(config.paths, config.separator))


def matches(pattern: str) -> list[Path]:
    """Return the files and folders that a path or glob names. A leading ~ is the home folder."""
    path = Path(os.path.expanduser(pattern))
    root = next((p for p in (path, *path.parents) if p.exists()), Path())
    whole = os.path.join(glob.escape(str(root)), *path.parts[len(root.parts) :])
    return [Path(p) for p in glob.glob(whole, recursive=True)]


def _files(path: Path) -> Iterator[Path]:
    """Yield ``path`` if it is a file, or every file below it that is not hidden."""

    def refuse(error: OSError) -> None:
        raise error  # else a folder that cannot be listed would be skipped

    if path.is_file():
        yield path
        return
    for here, folders, names in os.walk(path, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(here, name) for name in names if not name.startswith(".") and Path(here, name).is_file())


def _chunks(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", newline="") as f:
        while chunk := f.read(CHUNK):
            yield chunk


def _unusable(path: Path, nul: bool) -> str:
    """Return why a file cannot be read as text, or "" if it can."""
    try:
        binary = [not nul and "\0" in chunk for chunk in _chunks(path)]
    except UnicodeDecodeError as error:
        return f"is not UTF-8 ({error.reason}); convert it, e.g. `iconv -f latin1 -t utf8`, or leave it out"
    if any(binary):
        return "has NUL, as binary files do; leave it out, or separate documents by \\0"
    return "" if binary else "is empty; leave it out"


def _has(path: Path, separator: str) -> bool:
    return len(list(zip(range(2), _pieces(path, separator), strict=False))) > 1


def _pieces(path: Path, separator: str) -> Iterator[str]:
    """Yield the documents of a file, with a separator in memory that is bounded by the longest."""
    rest = ""
    for chunk in _chunks(path):
        rest += chunk
        if separator:
            *whole, rest = rest.split(separator)
            yield from whole
    yield rest
