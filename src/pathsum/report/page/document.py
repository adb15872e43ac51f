"""The report as data: sections with text, figures, tables and widgets. ``render`` makes Markdown and HTML of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pathsum.records.verdicts import ClaimResult
from pathsum.report.figures.base import Figure

LONG = 12  # a table with more rows is folded on the page
TERM = "term-"  # begins the anchor of a term where it is defined
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
class Widget:
    """A part of the page that a script fills, such as the lab. The Markdown report only names it."""

    name: str  # of its folder under templates/
    title: str
    models: tuple[Mapping[str, Any], ...]  # for its script: names, and data for JSON; arrays are packed
    about: Mapping[str, Any] = field(default_factory=dict)  # what the models share


@dataclass(frozen=True)
class ClaimCard:
    """A claim with its verdict and every number that the verdict rests on, as printed."""

    result: ClaimResult
    value: str  # median over models, with their range
    values: Mapping[str, str]  # of each model
    unit: str
    passing: str  # how many models pass
    remark: str  # on these models; begins with a comma, or is empty
    chance: str
    sample: str  # what the value of one model rests on (n)
    papers: str  # value in the papers
    note: str  # which models' intervals contain the threshold, or that there is no model; may be empty
    changes: tuple[str, ...]  # since the claims were frozen
    evidence: str  # title of the section that shows the records


@dataclass(frozen=True)
class Claims:
    """All claims, each with the numbers of its verdict."""

    cards: tuple[ClaimCard, ...]
    name = "claims"


Block: TypeAlias = Figure | Table | Widget | Claims


@dataclass(frozen=True)
class Section:
    """A section of the report: its title, paragraphs, and figures, tables and widgets."""

    title: str
    paragraphs: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    more: tuple[str, ...] = ()  # titles of the sections of the appendix that hold the details


@dataclass(frozen=True)
class Document:
    """The whole report, in the order in which it is shown."""

    title: str
    question: str
    answer: tuple[str, ...]  # on the first screen
    details: tuple[str, ...]  # more of the answer, below the cards
    setup: str  # what was trained, in one line
    headline: tuple[Figure, ...]  # the first figure; empty if it could not be drawn
    cards: tuple[ClaimCard, ...]  # claims of the first screen
    tally: str  # number of claims by verdict
    shortcuts: tuple[str, ...]  # titles of the sections that are linked on the first screen
    warnings: tuple[str, ...]
    chapters: tuple[Section, ...]
    appendix: tuple[Section, ...]  # folded on the page
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # records that each figure and table shows
    live: str = ""  # the model of the first screen, in words; "" without such a model

    @property
    def sections(self) -> tuple[Section, ...]:
        return (*self.chapters, *self.appendix)


def anchor(record: str) -> str:
    """Return the anchor of a record's row in the table of records."""
    return f"from-{record.replace('_', '-')}"


def slug(title: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
