"""Python sources of installed distributions, compared with the hashes that were published with them."""

import base64
import hashlib
import re
import tokenize
from collections.abc import Iterator, Sequence
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from pathsum.config import Corpus, Name
from pathsum.text.corpus import Source


class Distributions(Corpus):
    """A corpus of installed distributions. Each file must have the hash that the RECORD of its wheel states."""

    reference: ClassVar = ""  # pattern of what may follow a name
    distributions: tuple[Name, ...] = Field(min_length=1)

    @field_validator("distributions")
    @classmethod
    def _packages(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        pattern = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*" + cls.reference)
        if wrong := [name for name in names if not pattern.fullmatch(name)]:
            raise ValueError(f"expected names of installed packages, such as torch, not {wrong[0]!r}")
        packages = [name.partition("=")[0] for name in names]
        if len({re.sub("[._-]+", "-", name).lower() for name in packages}) < len(names):  # as PyPI compares names
            raise ValueError("expected different distributions, because each is read once")
        return names


class PythonCorpus(Distributions):
    """The Python sources of installed distributions."""

    source: Literal["python"]


def recorded_sources(distributions: Sequence[str]) -> Iterator[tuple[Path, bytes, str]]:
    """Yield path and content of each different Python file of installed distributions, sorted within each, and
    ``name==version`` of its distribution."""
    seen: set[bytes] = set()
    for file, who in [found for name in distributions for found in _files(name)]:
        path = Path(str(file.locate()))
        data = path.read_bytes() if path.is_file() else b""
        key = hashlib.sha256(data).digest()
        got, expected = base64.urlsafe_b64encode(key).rstrip(b"=").decode(), file.hash.value if file.hash else "none"
        if got != expected:
            raise ValueError(f"{path}: expected sha256 {expected}, got {got}; `pip install --force-reinstall {who}`")
        if data.strip() and key not in seen:
            seen.add(key)
            yield path, data, who


def python_documents(distributions: Sequence[str]) -> Iterator[str]:
    """Yield the Python sources of installed distributions, one document per file, sorted within each distribution."""
    for path, data, who in recorded_sources(distributions):
        try:
            yield data.decode(tokenize.detect_encoding(BytesIO(data).readline)[0])
        except (SyntaxError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: expected text in its encoding, got {error}; leave out {who}") from error


SOURCE = Source(PythonCorpus, lambda config: python_documents(config.distributions))


def _files(name: str) -> list[tuple[metadata.PackagePath, str]]:
    """Return each ``.py`` file of a distribution, and ``name==version``."""
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise ValueError(f"corpus.distributions: expected installed ones, got {name}; `pip install {name}`") from error
    who = f"{distribution.metadata['Name']}=={distribution.version}"
    files = distribution.files or ()
    return [(file, who) for file in sorted(files, key=str) if file.suffix == ".py" and ".." not in file.parts]
