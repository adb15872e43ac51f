"""Documents of local text files."""

from __future__ import annotations

import codecs
import glob
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from pathsum.config import Corpus, Name
from pathsum.corpora.corpus import Source

CHUNK = 1 << 20  # bytes read at a time
SHOWN = 20  # largest number of complaints that are listed
CONVERT = "convert it, e.g. `iconv -f {} -t utf8`, or leave it out"
OTHER = {  # first bytes of files that are often given instead of UTF-8 text, with the advice; the longest come first
    codecs.BOM_UTF32_LE: f"is UTF-32; {CONVERT.format('utf32')}",
    codecs.BOM_UTF32_BE: f"is UTF-32; {CONVERT.format('utf32')}",
    codecs.BOM_UTF16_LE: f"is UTF-16; {CONVERT.format('utf16')}",
    codecs.BOM_UTF16_BE: f"is UTF-16; {CONVERT.format('utf16')}",
    b"\x1f\x8b": "is compressed by gzip; unpack it, or leave it out",
}
CLOSED = "  - {}: cannot be read ({}); make it readable, or leave it out"  # a folder
ESCAPES = {"\\0": "\0", "\\n": "\n", "\\r": "\r", "\\t": "\t"}  # separators as they are typed on a command line


class TextCorpus(Corpus):
    """Local text files, named by paths, folders or globs. A file is one document, or several if ``separator`` splits
    it."""

    source: Literal["text"]
    paths: tuple[Name, ...] = Field(min_length=1)
    separator: str  # "" = one document per file


def text_documents(paths: Sequence[str], separator: str) -> Iterator[str]:
    r"""Yield the documents of the files, folders and globs in ``paths``. Blank documents are skipped.

    A folder stands for every file below it, except hidden files and files in hidden or linked folders. Leading parts of
    a glob that exist are taken literally, also ``notes [2024]``. Files come in sorted order, and a file that several
    ``paths`` or links lead to comes once. A byte-order mark at the beginning of a file is left out. A file is one
    document if ``separator`` is "", otherwise the separator splits it. In ``separator``, ``\0``, ``\n``, ``\r`` and
    ``\t`` may be written as a backslash and a character.

    Before the first document, one error lists the first SHOWN problems. It is FileNotFoundError if a path is missing, a
    folder has no files or a glob has no match. Otherwise it is ValueError: for files that are empty, binary, unreadable
    or not UTF-8, and for folders that cannot be listed completely. If there are no such problems, a separator that
    occurs in no file raises ValueError. Later, a file that has changed since then raises ValueError.
    """
    for spelled, meant in ESCAPES.items():
        separator = separator.replace(spelled, meant)
    found = {pattern: _expand(pattern) for pattern in paths}
    files: dict[object, Path] = {}  # by identity, which hard links and links share
    for path in sorted({path for paths, _ in found.values() for path in paths}):
        files.setdefault(_identity(path), path)
    ordered = list(files.values())
    wrong = [complaint for _, complaints in found.values() for complaint in complaints]
    missing = [f"  - {p}: {_why_nothing(p)}" for p, (paths, complaints) in found.items() if not paths + complaints]
    before = {path: _stamp(path) for path in ordered}
    unusable = [f"  - {path}: {why}" for path in ordered if (why := _unusable(path, allow_nul=separator == "\0"))]
    if missing or unusable or wrong:
        every = [*missing, *wrong, *unusable]
        more = [f"  … and {len(every) - SHOWN} more"] if len(every) > SHOWN else []
        message = "\n".join(["corpus.paths: expected UTF-8 text files, got:", *every[:SHOWN], *more])
        raise FileNotFoundError(message) if missing else ValueError(message)
    if separator and not any(_has(path, separator.encode()) for path in ordered):
        with ordered[0].open("rb") as f:
            crlf = "\n" in separator and "\r" not in separator and b"\r\n" in f.read(CHUNK)
        what = rf"lines of {ordered[0]} end with \r\n; write \r\n for \n" if crlf else "correct it"
        raise ValueError(f"corpus.separator: expected a string that occurs in the files, got {separator!r}; {what}")
    for path in ordered:
        try:
            for document in _pieces(path, separator):
                if document.strip():
                    yield document
            changed = _stamp(path) != before[path]
        except (OSError, UnicodeDecodeError):  # it could be read a moment ago
            changed = True
        if changed:
            raise ValueError(f"corpus.paths: {path} changed while it was read; run again when nothing writes to it")


SOURCE = Source(TextCorpus, lambda config: text_documents(config.paths, config.separator))


def _has(path: Path, separator: bytes) -> bool:
    with path.open("rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(separator) >= 0


def _identity(path: Path) -> object:
    """Return device and inode of a file, or its path if it is gone or its file system has no inodes."""
    try:
        about = path.stat()
        return (about.st_dev, about.st_ino) if about.st_ino else os.path.realpath(path)
    except OSError:
        return os.path.realpath(path)


def _stamp(path: Path) -> tuple[int, int]:
    """Return size and time of the last change, or zeros for a file that is gone."""
    try:
        about = path.stat()
        return about.st_size, about.st_mtime_ns
    except OSError:
        return 0, 0


def local_path(text: str) -> Path:
    """Return the path ``text``, with a leading ~ or ~user replaced."""
    path = Path(text)
    first = path.parts[0] if path.parts else ""
    return path if first != "~" and os.path.lexists(first) else Path(os.path.expanduser(text))


def split_pattern(pattern: str) -> tuple[Path, list[str]]:
    """Return the path with which ``pattern`` begins, and the parts after it, the first of which is a glob."""
    path = local_path(pattern)
    known = next((n for n in range(len(path.parts), 0, -1) if os.path.exists(Path(*path.parts[:n]))), 0)
    at = next((i for i, part in enumerate(path.parts) if i >= known and glob.has_magic(part)), len(path.parts))
    return Path(*path.parts[:at]), list(path.parts[at:])


def matches(pattern: str) -> list[Path]:
    """Return the files and folders that ``pattern`` names: the path itself if it exists, otherwise those that match the
    glob; if it ends with a slash, folders alone."""
    root, rest = split_pattern(pattern)
    if not rest:
        return [root] if os.path.lexists(root) else []
    found = [Path(p) for p in glob.glob(os.path.join(glob.escape(str(root)), *rest), recursive=True)]
    return [path for path in found if path.is_dir() or not pattern.endswith(os.sep)]


def _expand(pattern: str) -> tuple[list[Path], list[str]]:
    """Return the files that ``pattern`` names, and a complaint for each folder that cannot be listed completely."""
    root, rest = split_pattern(pattern)
    if "**" in rest:
        if not root.is_dir():
            return [], []
        if wrong := list(_unreadable(root, links=True, hidden=any(part.startswith(".") for part in rest))):
            return [], wrong
    elif wrong := list(_closed(root, rest)):
        return [], wrong
    candidates = matches(pattern)
    wrong = [complaint for c in candidates if c.is_dir() for complaint in _unreadable(c, links=False)]
    return [f for c in candidates for f in (_under(c) if c.is_dir() else [c])], wrong


def _closed(root: Path, rest: Sequence[str]) -> Iterator[str]:
    """Yield a complaint for each folder whose permissions prevent a search for ``rest`` below ``root``."""
    parts = [*map(glob.escape, root.parts), *rest]
    for depth in range(1, len(parts)):
        for folder in glob.glob(os.path.join(*parts[:depth])):
            try:
                os.stat(os.path.join(folder, "."))  # of a link, the folder that it leads to
                if depth >= len(root.parts) and glob.has_magic(parts[depth]):
                    os.scandir(folder).close()
            except PermissionError as error:
                yield CLOSED.format(folder, error.strerror)
            except OSError:  # a file, or a link to nowhere
                continue


def _unreadable(folder: Path, links: bool, hidden: bool = False) -> Iterator[str]:
    """Yield a complaint for each folder below ``folder`` that cannot be listed, and for each link that permissions
    prevent from being followed."""
    failed: list[OSError] = []
    for here, folders, files in os.walk(folder, followlinks=links, onerror=failed.append):
        folders[:] = [name for name in folders if hidden or not name.startswith(".")]
        above = [Path(here), *Path(here).parents]
        for path in [Path(here, name) for name in folders if links and Path(here, name).is_symlink()]:
            if any(path.resolve() == folder.resolve() for folder in above):
                folders.remove(path.name)
                yield f"  - {path}: is a link to a folder above it, so ** has no end; remove it, or give the folder"
        for link in filter(os.path.islink, [Path(here, name) for name in files if hidden or name[0] != "."]):
            try:
                os.stat(link)
            except PermissionError as error:
                failed.append(error)
            except OSError:  # a link to nowhere
                continue
    yield from (CLOSED.format(error.filename, error.strerror) for error in failed)


def _under(folder: Path) -> list[Path]:
    """Return every file below ``folder`` that is not hidden, broken links included."""
    found = []
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(here, name) for name in files if not name.startswith(".")]
    return [path for path in found if path.is_file() or path.is_symlink()]


def _why_nothing(pattern: str) -> str:
    if (folder := Path(os.path.expanduser(pattern))).is_dir():
        if any(Path(here, name).is_file() for here, _, names in os.walk(folder) for name in names):
            return "a folder of hidden files, which are not read; rename them and their folders, or give single files"
        return "a folder without files; put text files there, or give another path"
    if glob.has_magic(pattern):
        return f"matches no file (searched from {os.getcwd()}); check the pattern, or quote it if the shell expanded it"
    return f"does not exist (searched from {os.getcwd()}); check the path"


def _unusable(path: Path, allow_nul: bool) -> str:
    """Return why a file cannot be read as text, or "" if it can. Reads the whole file once, in chunks."""
    try:
        if path.exists() and not path.is_file():
            return "is a device, a pipe or a socket; give files, or leave it out of corpus.paths"
        size = path.stat().st_size  # 0 for files of /proc, some of which would never end
        if not size or (size == len(codecs.BOM_UTF8) and path.read_bytes() == codecs.BOM_UTF8):
            return "is empty or has no size; remove it, or leave it out of corpus.paths"
        decoder, offset = codecs.getincrementaldecoder("utf-8")(), 0
        with path.open("rb") as f:
            while True:
                chunk = f.read(CHUNK)
                if offset == 0 and (why := _other(chunk, allow_nul)):
                    return why
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


def _other(start: bytes, allow_nul: bool) -> str:
    """Return a message about the format of a file with the first bytes ``start``, or "" if it may be UTF-8."""
    for mark, why in OTHER.items():
        if start.startswith(mark):
            return why
    if not allow_nul and len(start) >= 8:
        for name, upper, lower in (("utf-16le", start[1::2], start[::2]), ("utf-16be", start[::2], start[1::2])):
            if upper.count(0) > 0.8 * len(upper) and 0 not in lower:  # most letters are below U+0100
                return f"looks like UTF-16 without a byte-order mark; {CONVERT.format(name)}"
    return ""


def _pieces(path: Path, separator: str) -> Iterator[str]:
    """Yield the documents of one file. With a separator, memory is bounded by the longest document."""
    with path.open(encoding="utf-8-sig", newline="") as f:
        if not separator:
            yield f.read()
            return
        rest = ""
        while chunk := f.read(CHUNK):
            *whole, rest = (rest + chunk).split(separator)
            yield from whole
        yield rest
