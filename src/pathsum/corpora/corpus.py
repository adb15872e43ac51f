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
    """Yield the documents of a corpus in a fixed order, at most ``max_documents``; memory does not grow with it.

    Raises, at the first document, ValueError (text that cannot be used), FileNotFoundError (missing paths,
    distributions or packages), ConnectionError (no network for a hub corpus)."""
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


def split(document: str, validation_share: float) -> Part:
    """Assign a document to training, to tuning (training's evaluations and learning curves) or to the verdicts.

    The part depends on the document's sha256 alone, so two equal documents are never in different parts.
    ``validation_share`` (0..1) is the expected share of documents held out, half of them for each purpose. Tuning takes
    the lowest hashes, so that a tuning document never becomes a verdict document where the share grows."""
    place = int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big") / 2**64
    if place >= validation_share:
        return "train"
    return "tuning" if place < validation_share / 2 else "verdict"
