"""The report as data (sections with text, figures and tables), and its two renderings: Markdown and one HTML page.

Both templates render the same ``Document`` and have the same content. Text from a corpus is an entry of kind ``token``,
which both escape completely.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pathsum.claims.formatting import head_label, interval, number
from pathsum.report.figures.base import Figure

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("tables.js", "pieces.js")  # scripts of the page
EXPLORER = ("explorer.js",)  # only if it has an explorer
LAB = ("lab/tokenizer.js", "lab/model.js", "lab/paths.js", "lab/lab.js")  # only if it has a lab
LONG = 12  # a table with more rows is folded on the page
ORIGINS = "Where each number comes from"
MARKS = {"reproduced": "✓ reproduced", "partly": "◐ partly", "not": "✗ not", "not testable here": "– not testable here"}

_COORDINATE = re.compile(r"\d+\.\d{3,}")

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

    A row is a record, or a tuple such as (model, record). ``value`` is the name of an attribute of the record, or three
    names for a value and the ends of its interval, or a function of the items of the row. The function may return an
    ``Entry``.
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
    """Format ``value`` with two decimals at any size, so that 0.004 is printed as 0.00."""
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
        return self.fold and self.long


@dataclass(frozen=True)
class ExplorerCell:
    """One model of the explorers."""

    name: str
    data: Mapping[str, Any]  # for explorer.js; with the key "tables" the circuit explorer shows the model

    @property
    def tables(self) -> bool:
        return "tables" in self.data


@dataclass(frozen=True)
class Explorer:
    """The attention explorer and the circuit explorer. They are part of the HTML page only, not of the Markdown."""

    first: str  # name of the model that is shown first
    cells: tuple[ExplorerCell, ...]
    name = "explorers"

    @property
    def tables(self) -> bool:
        return any(cell.tables for cell in self.cells)


@dataclass(frozen=True)
class Lab:
    """Trained models that run on the page: Markdown leaves them out."""

    title: str
    about: Mapping[str, Any]  # tokenizer and passages
    models: tuple[Mapping[str, Any], ...]  # sizes, weights and roles of heads
    name = "lab"


Block: TypeAlias = Figure | Table | Explorer | Lab


@dataclass(frozen=True)
class Section:
    """A section of the report: its title, paragraphs, and figures, tables and explorers."""

    title: str
    paragraphs: tuple[str, ...]
    blocks: tuple[Block, ...] = ()

    @classmethod
    def of(cls, title: str, paragraphs: Iterable[str], blocks: Iterable[Block]) -> Section:
        """Return a section without empty paragraphs and without tables that have no rows."""
        shown = (block for block in blocks if not isinstance(block, Table) or block.rows)
        return cls(title, tuple(p for p in paragraphs if p), tuple(shown))


@dataclass(frozen=True)
class Document:
    """The whole report, in the order in which it is shown."""

    title: str
    question: str
    answer: tuple[str, ...]
    shortcuts: tuple[str, ...]  # titles of the sections that are linked at the top
    warnings: tuple[str, ...]
    opening: tuple[Figure | Table, ...]  # the first figure and the tables of verdicts
    parts: tuple[tuple[Section, ...], ...]  # parts of the report; the first section of a part gives its heading
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # records that each figure and table shows

    def records(self, name: str) -> tuple[str, ...]:
        """Return the names of the records that a figure or table shows; empty if it shows none."""
        return self.sources.get(name, ())

    @property
    def sections(self) -> tuple[Section, ...]:
        return tuple(section for part in self.parts for section in part)


def markdown(document: Document) -> str:
    """Render ``document`` as Markdown. Figures are links to files under figures/."""
    environment = _environment(autoescape=False)
    environment.filters |= {"text": markdown_text, "field": _markdown_field}
    return environment.get_template("README.md.j2").render(document=document)


def html(document: Document) -> str:
    """Render ``document`` as one HTML file that contains its style, scripts and figures.

    Its content security policy forbids network requests and other scripts. Links lead to figures/ and tables/ in the
    same folder.
    """
    kinds = {type(block) for section in document.sections for block in section.blocks}
    names = (*SCRIPTS, *(LAB if Lab in kinds else ()), *(EXPLORER if Explorer in kinds else ()))
    scripts = [Markup(_read(name)) for name in names]
    environment = _environment(autoescape=True)
    environment.filters |= {"data_uri": _data_uri, "data_block": _data_block, "digest": _digest, "unbroken": _unbroken}
    style = Markup(_read("style.css") + _read("explorer.css") + _read("lab/lab.css"))
    return environment.get_template("index.html.j2").render(document=document, style=style, scripts=scripts)


def anchor(record: str) -> str:
    """Return the anchor of a record's row in the table of records."""
    return f"from-{record.replace('_', '-')}"


def slug(title: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _environment(*, autoescape: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["slug"] = slug
    environment.globals |= {"marks": MARKS, "anchor": anchor, "ORIGINS": ORIGINS}
    environment.tests |= {
        "figure": lambda block: isinstance(block, Figure),
        "explorer": lambda block: isinstance(block, Explorer),
        "lab": lambda block: isinstance(block, Lab),
    }
    return environment


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(inline: str) -> Markup:
    """Return the SHA-256 of an inline style or script, as a content security policy lists it."""
    return Markup(f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'")


def _unbroken(number: str) -> str:
    """Replace spaces by no-break spaces, except before a bracket, so that a line breaks only before brackets."""
    return re.sub(r" (?![(\[])", "\u00a0", number)


def _data_block(data: Mapping[str, Any]) -> Markup:
    """Return ``data`` as ASCII JSON without <, > and &, so that no token in it can end its script block."""
    text = json.dumps(data, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _data_uri(figure: Figure) -> Markup:
    """Write a figure as text with coordinates to a hundredth of a point: two fifths smaller than in base64."""
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", figure.svg.decode(), flags=re.S)
    text = re.sub(r"\s+", " ", text)
    for long, short in (("> <", "><"), ("; ", ";"), (": ", ":"), ('"', "'")):
        text = text.replace(long, short)
    text = re.sub(r"\b(?:d|x|y)='[^']*'", lambda shape: _COORDINATE.sub(_hundredths, shape[0]), text)
    text = re.sub(r"\bd='[^']*'", lambda path: re.sub(r" ?([A-Za-z]) ?", r"\1", path[0]), text)
    return Markup("data:image/svg+xml," + text.replace("%", "%25").replace("#", "%23").replace("&", "&amp;"))


def _hundredths(coordinate: re.Match[str]) -> str:
    return f"{float(coordinate[0]):.2f}".rstrip("0").rstrip(".")


def markdown_text(text: str) -> str:
    """Escape ``text`` so that Markdown shows it unchanged. Runs of white space become one space."""
    return "".join(f"&#{ord(c)};" if c in "&<>|`*_[]\\$~#" else c for c in " ".join(text.split()))


def _markdown_field(entry: Entry) -> str:
    if entry.kind == "token":  # ASCII punctuation becomes entities, so that it cannot act as markup, mention or formula
        return "<code>" + "".join(c if c.isalnum() or ord(c) > 127 else f"&#{ord(c)};" for c in entry.text) + "</code>"
    text = markdown_text(MARKS.get(entry.text, entry.text) if entry.kind == "verdict" else entry.text)
    address = f"#{slug(entry.target)}" if entry.target else entry.link
    return f"[{text}]({address})" if address else text
