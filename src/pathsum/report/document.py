"""The report as data, sections of text, figures and tables, and its two renderings: Markdown for forges, one HTML page.

Both templates walk the same ``Document``, so they say the same. Whatever comes from a corpus is a ``token`` entry,
shown as text and nothing else.
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
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pathsum.claims.formatting import head_label, interval, number
from pathsum.report.figures.base import Figure

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS, EXPLORER = ("tables.js",), "explorer.js"  # run inside the page, the latter where there is something to explore
LONG = 12  # rows from which a table is folded on the page
ORIGINS = "Where each number comes from"
MARKS = {"reproduced": "✓ reproduced", "partly": "◐ partly", "not": "✗ not", "not testable here": "– not testable here"}

Kind = Literal["text", "number", "token", "verdict"]


@dataclass(frozen=True)
class Entry:
    """One field of a table. It may lead to a section, by its title (``target``), or to a file (``link``)."""

    text: str
    kind: Kind = "text"
    target: str = ""
    link: str = ""
    anchor: str = ""  # by which the page's own links find it


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and the value that a row has there.

    A row is a record, or a tuple such as (model, record). ``value`` names an attribute of the record, or three for a
    value with its interval, or is a function of all that is in the row. The function may return an ``Entry`` itself.
    """

    name: str
    value: str | tuple[str, str, str] | Callable[..., Any]
    digits: int = 2
    kind: Kind = "number"

    def entry(self, row: Any) -> Entry:
        """Format the value of ``row`` in this column; – where it is None."""
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
    """Print two digits, whatever the size: a share below 0.005 prints as 0.00."""
    return number(None if value is None else round(value, 2) + 0.0)


@dataclass(frozen=True)
class Text(Column):
    """A column of words, such as names."""

    kind: Kind = "text"


MODEL = Text("model", lambda cell, *_: cell.name)
HEAD = Text("head", lambda *row: head_label(row[-1].layer, row[-1].head))


@dataclass(frozen=True)
class Table:
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    csv: str = ""  # the file under tables/ that has all of it
    source: str = ""  # by what name ``Document.sources`` knows it, where not by its file's
    levels: int = 0  # rows at the top, such as chance levels, that stay there when sorted
    fold: bool = True  # on the page, once it is long; one that is not becomes cards on a phone

    @classmethod
    def of(cls, rows: Iterable[Any], *columns: Column, caption: str, **options: Any) -> Table:
        """Make a row for each of ``rows``; ``options`` are the table's other fields."""
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
        """Return whether the page shows it only on request."""
        return self.fold and self.long


@dataclass(frozen=True)
class ExplorerCell:
    name: str
    data: Mapping[str, Any]  # for explorer.js; where it has "tables", the circuit explorer shows the model

    @property
    def tables(self) -> bool:
        return "tables" in self.data


@dataclass(frozen=True)
class Explorer:
    """The attention and the circuit explorer, on the page alone: Markdown leaves them out."""

    first: str  # the model that they open with
    cells: tuple[ExplorerCell, ...]
    name = "explorers"

    @property
    def tables(self) -> bool:
        return any(cell.tables for cell in self.cells)


@dataclass(frozen=True)
class Section:
    title: str
    paragraphs: tuple[str, ...]
    blocks: tuple[Figure | Table | Explorer, ...] = ()

    @classmethod
    def of(cls, title: str, paragraphs: Iterable[str], blocks: Iterable[Figure | Table | Explorer]) -> Section:
        """Leave out empty paragraphs and tables without rows."""
        shown = (block for block in blocks if not isinstance(block, Table) or block.rows)
        return cls(title, tuple(p for p in paragraphs if p), tuple(shown))


@dataclass(frozen=True)
class Document:
    title: str
    question: str
    answer: tuple[str, ...]
    shortcuts: tuple[str, ...]  # titles of the sections that most readers want
    warnings: tuple[str, ...]
    opening: tuple[Figure | Table, ...]  # the one picture and the verdicts
    parts: tuple[tuple[Section, ...], ...]  # of the story; the first section of each leads it
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # records behind each figure and table

    def records(self, name: str) -> tuple[str, ...]:
        """Return the records behind a figure or table; none for what stands in no record."""
        return self.sources.get(name, ())

    @property
    def sections(self) -> tuple[Section, ...]:
        return tuple(section for part in self.parts for section in part)


def markdown(document: Document) -> str:
    """Render ``document`` for a forge; figures are files under figures/."""
    environment = _environment(autoescape=False)
    environment.filters |= {"text": markdown_text, "field": _markdown_field}
    return environment.get_template("README.md.j2").render(document=document)


def html(document: Document) -> str:
    """Render ``document`` as one file with style, scripts and figures inside. Its policy forbids any request and any
    other script; links lead to figures/ and tables/ in the same folder."""
    explored = any(isinstance(block, Explorer) for section in document.sections for block in section.blocks)
    scripts = [Markup(_read(name)) for name in (*SCRIPTS, *((EXPLORER,) if explored else ()))]
    environment = _environment(autoescape=True)
    environment.filters |= {"data_uri": _data_uri, "data_block": _data_block, "digest": _digest, "unbroken": _unbroken}
    style = Markup(_read("style.css") + _read("explorer.css"))
    return environment.get_template("index.html.j2").render(document=document, style=style, scripts=scripts)


def anchor(record: str) -> str:
    """Name the row of a record in the table of origins."""
    return f"from-{record.replace('_', '-')}"


def slug(title: str) -> str:
    """Return the anchor that forges give a heading."""
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
    }
    return environment


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(inline: str) -> Markup:
    """Name an inline style or script as a policy does."""
    return Markup(f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'")


def _unbroken(number: str) -> str:
    """Keep a number on one line, and what follows it in brackets on one line."""
    return re.sub(r" (?![(\[])", "\u00a0", number)


def _data_block(data: Mapping[str, Any]) -> Markup:
    """Write JSON in ASCII in which nothing is read as markup: no token can end its block."""
    text = json.dumps(data, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _data_uri(figure: Figure) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(figure.svg).decode()


def markdown_text(text: str) -> str:
    """Escape our own words so that nothing in them is read as markup."""
    return "".join(f"&#{ord(c)};" if c in "&<>|`*_[]\\$~#" else c for c in " ".join(text.split()))


def _markdown_field(entry: Entry) -> str:
    if entry.kind == "token":  # every ASCII sign as an entity: nothing is left to be read as markup, mention or formula
        return "<code>" + "".join(c if c.isalnum() or ord(c) > 127 else f"&#{ord(c)};" for c in entry.text) + "</code>"
    text = markdown_text(MARKS.get(entry.text, entry.text) if entry.kind == "verdict" else entry.text)
    address = f"#{slug(entry.target)}" if entry.target else entry.link
    return f"[{text}]({address})" if address else text
