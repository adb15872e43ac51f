"""The documents of a corpus, and their split into training, tuning and verdict documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

from pathsum.config import CorpusConfig, HubCorpus, PlantedCorpus, PythonCorpus, TextCorpus
from pathsum.corpora.hub import hub_documents
from pathsum.corpora.planted import planted
from pathsum.corpora.python_sources import python_documents
from pathsum.corpora.text_files import text_documents
from pathsum.data.tokens import Part


def documents(config: CorpusConfig) -> Iterator[str]:
    """Yield the documents of a corpus in a fixed order, at most ``max_documents``.

    Streams: memory does not grow with the corpus. Whatever can be checked without reading everything is checked at the
    first document. Raises ValueError (text that cannot be used), FileNotFoundError (missing paths, distributions or
    packages), ConnectionError (no network for a hub corpus).
    """
    if isinstance(config, PythonCorpus):
        source = python_documents(config.distributions)
    elif isinstance(config, TextCorpus):
        source = text_documents(config.paths, config.separator)
    elif isinstance(config, HubCorpus):
        source = hub_documents(config)
    else:
        assert isinstance(config, PlantedCorpus)
        source = planted(config)[0]
    return islice(source, config.max_documents)


def digest(document: str) -> bytes:
    """Return the sha256 of the UTF-8 bytes of a document."""
    return hashlib.sha256(document.encode()).digest()


def split(document: str, validation_share: float) -> Part:
    """Assign a document to training, to tuning (training's evaluations and learning curves) or to the verdicts.

    A function of the document's sha256 alone: neither its position nor the other documents matter, and two equal
    documents are never in different parts. ``validation_share`` (0..1) is the expected share of documents held out,
    half of them for each purpose. Tuning takes the lowest hashes, so that what was once tuned on never becomes a
    verdict where the share grows: the 3 % that were held out before the split in two are all tuning at 10 %.
    """
    place = int.from_bytes(digest(document)[:8], "big") / 2**64
    if place >= validation_share:
        return "train"
    return "tuning" if place < validation_share / 2 else "verdict"
