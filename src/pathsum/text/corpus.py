"""The documents of a corpus, and their split into training, tuning and verdict documents."""

import functools
import hashlib
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, get_args

import pathsum.text
from pathsum.config import ConfigError, Corpus, load, unknown
from pathsum.text.tokens import Part


@dataclass(frozen=True)
class Source:
    """A source of text: the type of its settings, and the function from such settings to documents."""

    settings: type[Corpus]
    documents: Callable[[Any], Iterator[str]]


@functools.cache
def sources() -> dict[str, Source]:
    """Return the object ``SOURCE`` of each file of ``pathsum.text`` that has one, by the value of corpus.source."""
    names = (module.name for module in pkgutil.iter_modules(pathsum.text.__path__, "pathsum.text."))
    found = [module.SOURCE for module in map(importlib.import_module, names) if hasattr(module, "SOURCE")]
    return {get_args(source.settings.model_fields["source"].annotation)[0]: source for source in found}


def load_corpus(values: Any) -> Corpus:
    """Return the configuration of the corpus, of the type that its ``source`` names."""
    source = values.get("source") if isinstance(values, Mapping) else None
    if not isinstance(source, str) or source not in sources():
        raise ConfigError([f"corpus.source: {unknown(str(source), sources(), 'source')}"])
    return load(sources()[source].settings, values, "corpus")


def documents(config: Corpus) -> Iterator[str]:
    """Yield the documents of a corpus in a fixed order, at most ``max_documents``."""
    return islice(sources()[config.source].documents(config), config.max_documents)


def split(document: str, validation_share: float) -> Part:
    """Return the part of the corpus that a document belongs to."""
    place = int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big") / 2**64
    if place >= validation_share:
        return "train"
    return "tuning" if place < validation_share / 2 else "verdict"
