"""Python sources of installed distributions, compared with the hashes that were published with them."""

from __future__ import annotations

import base64
import hashlib
import re
import tokenize
from collections.abc import Iterator, Sequence
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from pathsum.config import Corpus, Name
from pathsum.corpora.corpus import Source


class PythonCorpus(Corpus):
    """Python sources of installed distributions. Each file must have the hash that the RECORD of its wheel states."""

    source: Literal["python"]
    distributions: tuple[Name, ...] = Field(min_length=1)

    @field_validator("distributions")
    @classmethod
    def _packages(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [name for name in names if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name)]:
            raise ValueError(f"expected names of installed packages, such as torch, not {wrong[0]!r}")
        if len({re.sub("[._-]+", "-", name).lower() for name in names}) < len(names):  # as PyPI compares names
            raise ValueError("expected different distributions, because each is read once")
        return names


def python_documents(distributions: Sequence[str]) -> Iterator[str]:
    """Yield the Python sources of installed distributions, one document per file, sorted within each distribution."""
    absent = [name for name in distributions if not _installed(name)]
    if absent:
        raise FileNotFoundError(
            f"corpus.distributions: expected installed distributions, got none named {', '.join(absent)}; "
            f"run `pip install {' '.join(absent)}`, or take them out of corpus.distributions"
        )
    files = [file for name in distributions for file in _recorded_sources(name)]
    complaints = [complaint for path, sha256, who in files if (complaint := _differs(path, sha256, who))]
    if complaints:
        raise ValueError("\n".join(["The Python corpus differs from what was installed:", *complaints]))
    seen: set[bytes] = set()
    for path, _, _ in files:
        data = path.read_bytes()
        key = hashlib.sha256(data).digest()
        if data.strip() and key not in seen:
            seen.add(key)
            yield data.decode(tokenize.detect_encoding(BytesIO(data).readline)[0])


SOURCE = Source(PythonCorpus, lambda config: python_documents(config.distributions))


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _recorded_sources(name: str) -> list[tuple[Path, str, str]]:
    """Return (path, sha256, ``name==version``) of each ``.py`` file of a distribution."""
    distribution = metadata.distribution(name)
    who = f"{distribution.metadata['Name']}=={distribution.version}"
    if distribution.files is None:
        raise ValueError(f"{who} has no RECORD of its files; run `pip install --force-reinstall {who}`")
    sources = sorted((f for f in distribution.files if f.suffix == ".py" and ".." not in f.parts), key=str)
    return [(Path(str(f.locate())), f.hash.value if f.hash and f.hash.mode == "sha256" else "", who) for f in sources]


def _differs(path: Path, sha256: str, who: str) -> str:
    """Return what is wrong with an installed file, or "" if nothing is."""
    advice = f"run `pip install --force-reinstall {who}`"
    if not path.is_file():
        return f"  - {path}: is in the RECORD of {who} and not on disk; {advice}"
    data = path.read_bytes()
    got = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    if got != sha256:
        return f"  - {path}: expected sha256 {sha256 or '(none recorded)'}, got {got}; {advice}"
    try:
        data.decode(tokenize.detect_encoding(BytesIO(data).readline)[0])
    except (SyntaxError, UnicodeDecodeError) as error:
        return f"  - {path}: is not text in its declared encoding ({error}); leave {who} out of corpus.distributions"
    return ""
