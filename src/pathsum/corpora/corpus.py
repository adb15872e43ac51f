"""The documents of a corpus, and their split into training, tuning and verdict documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

from pathsum.config import CorpusConfig, HubCorpus, PythonCorpus, SyntheticCorpus, TextCorpus
from pathsum.corpora.hub import hub_documents
from pathsum.corpora.python_sources import python_documents
from pathsum.corpora.synthetic import synthetic_corpus
from pathsum.corpora.text_files import text_documents
from pathsum.data.tokens import Part


def documents(config: CorpusConfig) -> Iterator[str]:
    """Yield the documents of a corpus in a fixed order, at most ``max_documents``.

    Documents are streamed, and are not kept in memory.

    Raises ValueError for settings or text that cannot be used, FileNotFoundError for missing paths or distributions,
    ModuleNotFoundError for a missing package, and ConnectionError if the hub cannot be reached. Some unusable text is
    found only after the first documents.
    """
    if isinstance(config, PythonCorpus):
        source = python_documents(config.distributions)
    elif isinstance(config, TextCorpus):
        source = text_documents(config.paths, config.separator)
    elif isinstance(config, HubCorpus):
        source = hub_documents(config)
    else:
        assert isinstance(config, SyntheticCorpus)
        source = synthetic_corpus(config)[0]
    return _whole_characters(islice(source, config.max_documents), config.name)


def _whole_characters(source: Iterator[str], name: str) -> Iterator[str]:
    """Yield the documents. Raises ValueError for a lone surrogate (half a character), which UTF-8 cannot encode."""
    for number, document in enumerate(source):
        try:
            document.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"corpus {name}: expected text, got the lone surrogate {document[error.start]!r} at character "
                f"{error.start} of document {number}; remove it from the source"
            ) from error
        yield document


def split(document: str, validation_share: float) -> Part:
    """Return the part of the corpus that a document belongs to.

    Training evaluates on tuning documents, and claims are judged on verdict documents. The part depends on the sha256
    of the document alone, so equal documents are in the same part. ``validation_share`` (0 to 1) is the expected share
    of documents outside training, half of them for tuning. Tuning documents have the lowest hashes, so that no tuning
    document becomes a verdict document if the share grows.
    """
    place = int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big") / 2**64
    if place >= validation_share:
        return "train"
    return "tuning" if place < validation_share / 2 else "verdict"
