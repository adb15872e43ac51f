"""A source of text is one file in ``corpora/``, which nothing else names."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pathsum.text
from pathsum.config import ConfigError
from pathsum.text.corpus import documents, load_corpus, sources

LINES = """
from pathlib import Path
from typing import Literal

from pathsum.config import Corpus, Name
from pathsum.text.corpus import Source


class LinesCorpus(Corpus):
    source: Literal["lines"]
    path: Name


SOURCE = Source(LinesCorpus, lambda config: iter(Path(config.path).read_text().splitlines()))
"""


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Add a source whose documents are the lines of a file. Return this file."""
    (tmp_path / "lines_of_a_file.py").write_text(LINES)
    (tmp_path / "text").write_text("one\ntwo\nthree\n")
    monkeypatch.setattr(pathsum.text, "__path__", [*pathsum.text.__path__, str(tmp_path)])
    sources.cache_clear()
    yield tmp_path / "text"
    sources.cache_clear()
    sys.modules.pop("pathsum.text.lines_of_a_file", None)


def test_a_new_source_is_one_file(lines: Path) -> None:
    settings = {"source": "lines", "name": "l", "validation_share": 0.1, "path": str(lines), "max_documents": 2}
    assert list(documents(load_corpus(settings))) == ["one", "two"]
    with pytest.raises(ConfigError, match=r"corpus.max_documents: expected at least 1, got 0"):
        load_corpus({**settings, "max_documents": 0})  # the bounds of every corpus
    with pytest.raises(ConfigError, match=r"corpus.source: line: no such source; did you mean lines"):
        load_corpus({**settings, "source": "line"})
