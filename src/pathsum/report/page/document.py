"""The report as data: sections with text, figures, tables and widgets. ``render`` makes Markdown and HTML of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from pathsum.claims.formatting import head_label, interval, number
from pathsum.report.figures.base import Figure

LONG = 12  # a table with more rows is folded on the page
ORIGINS = "Where each number comes from"
APPENDIX = "Appendix: every analysis"
PAPERS = {  # by address
    "https://transformer-circuits.pub/2021/framework/index.html": "A Mathematical Framework for Transformer Circuits "
    "(AMF, Elhage et al. 2021)",
    "https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html": "In-context Learning "
    "and Induction Heads (ICL, Olsson et al. 2022)",
}
MARKS = {
    "reproduced": "✓ reproduced",
    "partly": "◐ partly",
    "not": "✗ not reproduced",
    "no induction head here": "– no induction head here",
    "not testable here": "– not testable here",
}

Kind = Literal["text", "number", "token", "verdict"]


@dataclass(frozen=True)
class Entry:
    """One field of a table. It may link to a section (``target``) or to a file (``link``)."""

    text: str
    kind: Kind = "text"
    target: str = ""  # title of a section
    link: str = ""  # path of a file
    anchor: str = ""  # id of the field, for links to it


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and how to find the value of a row.

    A row is a record, or a tuple such as (model, record). ``value`` is the name of an attribute of the record (of a
    tuple's last item), or three names for a value and the ends of its interval, or a function of the items of the row.
    The function may return an ``Entry``. ``digits`` does not apply to integers, nor to intervals, which have two
    decimals.
    """

    name: str
    value: str | tuple[str, str, str] | Callable[..., Any]
    digits: int = 2
    kind: Kind = "number"

    def entry(self, row: Any) -> Entry:
        """Return the formatted value of ``row`` in this column; None is printed as –."""
        parts = row if isinstance(row, tuple) else (row,)
        if callable(self.value):
            found = self.value(*parts)
        else:
            found = attrgetter(*([self.value] if isinstance(self.value, str) else self.value))(parts[-1])
        return found if isinstance(found, Entry) else Entry(self._text(found), self.kind)

    def _text(self, found: Any) -> str:
        if isinstance(found, str):
            return found
        if isinstance(found, tuple):
            return interval(*found)
        return f"{found:,}" if isinstance(found, int) else number(found, self.digits)


def plain(value: float | None) -> str:
    """Format ``value`` with two decimals even if it rounds to zero: 0.004 is printed as 0.00. None becomes –."""
    return number(None if value is None else round(value, 2) + 0.0)


@dataclass(frozen=True)
class Text(Column):
    """A column of text, such as names."""

    kind: Kind = "text"


MODEL = Text("model", lambda cell, *_: cell.name)
HEAD = Text("head", lambda *row: head_label(row[-1].layer, row[-1].head))


@dataclass(frozen=True)
class Table:
    """A table of the report: its caption, headings and rows, and its CSV file."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    csv: str = ""  # file under tables/ with all rows and columns
    source: str = ""  # name of the table in ``Document.sources``; the default is the name of the CSV file
    levels: int = 0  # number of rows at the top, such as chance levels, that stay there when the table is sorted
    fold: bool = True  # whether the page folds the table if it is long; otherwise rows become cards on a phone
    title: str = ""  # of the fold; a table with a title is folded, however short

    @classmethod
    def of(cls, rows: Iterable[Any], *columns: Column, caption: str, **options: Any) -> Table:
        """Return a table with one row for each of ``rows``. ``options`` are further fields of the table."""
        entries = tuple(tuple(column.entry(row) for column in columns) for row in rows)
        return cls(caption, tuple(column.name for column in columns), entries, **options)

    @property
    def name(self) -> str:
        return self.source or self.csv.removesuffix(".csv")

    @property
    def long(self) -> bool:
        return len(self.rows) > LONG

    @property
    def folded(self) -> bool:
        """Return whether the page shows the table only after a click."""
        return bool(self.title) or (self.fold and self.long)


@dataclass(frozen=True)
class ExplorerCell:
    """One model of the circuit explorer."""

    name: str
    data: Mapping[str, Any]  # for explorer.js


@dataclass(frozen=True)
class Explorer:
    """The circuit explorer. It is part of the HTML page only, not of the Markdown."""

    first: str  # name of the model that is shown first
    cells: tuple[ExplorerCell, ...]
    name = "explorers"


@dataclass(frozen=True)
class Lab:
    """Trained models that run on the page. Markdown leaves them out."""

    title: str
    about: Mapping[str, Any]  # tokenizer and passages
    models: tuple[Mapping[str, Any], ...]  # sizes, weights and roles of heads
    name = "lab"


@dataclass(frozen=True)
class ModelValue:
    """The value of a claim's measure in one model, whether the model passes, and a note if it does not."""

    model: str
    value: str
    passes: bool
    note: str = ""


@dataclass(frozen=True)
class ClaimCard:
    """A claim with its verdict and every number that the verdict rests on."""

    claim: str
    verdict: str
    value: str  # median over models, with their range
    unit: str
    threshold: str
    passing: str  # how many models pass
    remark: str  # on these models; begins with a comma, or is empty
    chance: str
    sample: str  # what the value of one model rests on (n)
    papers: str  # value in the papers
    section: str  # section of the paper
    measure: str
    models: tuple[ModelValue, ...]
    note: str  # which models' intervals contain the threshold, or that there is no model; may be empty
    changes: tuple[str, ...]  # since the claims were frozen
    evidence: str  # title of the section that shows the records


@dataclass(frozen=True)
class Claims:
    """All claims, each with the numbers of its verdict."""

    cards: tuple[ClaimCard, ...]
    name = "claims"


@dataclass(frozen=True)
class Watch:
    """Attention patterns over training. Markdown leaves them out."""

    title: str
    models: tuple[Mapping[str, Any], ...]  # for watch.js; the first is shown first
    name = "watch_it_learn"


@dataclass(frozen=True)
class HeadsAndEdges:
    """The map of heads and of the edges between them. Markdown leaves it out."""

    title: str
    models: tuple[Mapping[str, Any], ...]  # for heads.js; the first is shown first
    rule: str  # when an edge composes, in words that follow "if"
    name = "heads_and_edges"


Block: TypeAlias = Figure | Table | Explorer | Lab | Watch | HeadsAndEdges | Claims


@dataclass(frozen=True)
class Section:
    """A section of the report: its title, paragraphs, and figures, tables and widgets."""

    title: str
    paragraphs: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    more: tuple[str, ...] = ()  # titles of the sections of the appendix that hold the details

    @classmethod
    def of(cls, title: str, paragraphs: Iterable[str], blocks: Iterable[Block], more: Iterable[str] = ()) -> Section:
        """Return a section without empty paragraphs and without tables that have no rows."""
        shown = (block for block in blocks if not isinstance(block, Table) or block.rows)
        return cls(title, tuple(p for p in paragraphs if p), tuple(shown), tuple(more))


@dataclass(frozen=True)
class Document:
    """The whole report, in the order in which it is shown."""

    title: str
    question: str
    answer: tuple[str, ...]
    setup: str  # what was trained, in one line
    headline: tuple[Figure, ...]  # the first figure; empty if it could not be drawn
    cards: tuple[ClaimCard, ...]  # claims of the first screen
    tally: str  # number of claims by verdict
    shortcuts: tuple[str, ...]  # titles of the sections that are linked on the first screen
    warnings: tuple[str, ...]
    chapters: tuple[Section, ...]
    appendix: tuple[Section, ...]  # folded on the page
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # records that each figure and table shows

    def records(self, name: str) -> tuple[str, ...]:
        """Return the names of the records that a figure or table shows; empty if it shows none."""
        return self.sources.get(name, ())

    @property
    def sections(self) -> tuple[Section, ...]:
        return (*self.chapters, *self.appendix)


def anchor(record: str) -> str:
    """Return the anchor of a record's row in the table of records."""
    return f"from-{record.replace('_', '-')}"


def slug(title: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
