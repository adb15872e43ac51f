"""Facts and words of a theme: ``facts`` over frames of records, and a Markdown template that quotes them.

In a template, paragraphs are separated by blank lines, and a paragraph [name] is the figure or the table of that name.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pathsum.claims.formatting import head_label, interval, number, plural, span
from pathsum.core.storage import frame
from pathsum.records import registry
from pathsum.records.evaluation import Evaluation
from pathsum.records.results import Cell, Results
from pathsum.records.roles import HeadRoles
from pathsum.records.summary import CellSummary
from pathsum.records.verdicts import ClaimResult
from pathsum.report.figures.base import Figure
from pathsum.report.page.document import Block, Entry, Kind, Section, Table


class Frames:
    """One frame per record, by its name: the rows of all ``cells``, with the columns ``cell``, ``n_layers`` and
    ``n_heads`` of their model. ``t.suffix_cuts`` has those of the record suffix_cuts. The frames of the same ``cells``
    are made once."""

    _cells: Mapping[str, Cell]
    _latest: ClassVar[list["Frames"]] = []

    def __new__(cls, cells: Mapping[str, Cell]) -> "Frames":
        for known in cls._latest:
            if [*known._cells] == [*cells] and all(known._cells[name] is cells[name] for name in cells):
                return known
        made = super().__new__(cls)
        made._cells = cells
        cls._latest[:] = [made, *cls._latest[:7]]
        return made

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Return the summaries of the models, by name."""
        return frame([c.summary for c in self._cells.values()], CellSummary).set_index("cell")

    @cached_property
    def log(self) -> pd.DataFrame:
        """Return the evaluations, with the best head's scores: ``matching``, and ``previous`` in the first layer."""
        parts = [frame(cell.log, Evaluation).assign(cell=name) for name, cell in self._cells.items()]
        found = pd.concat(parts or [frame([], Evaluation).assign(cell="")], ignore_index=True)
        first = found["previous_token"].str[:1]
        return found.assign(matching=found["prefix_matching"].map(_best), previous=first.map(_best))

    @cached_property
    def induction(self) -> pd.DataFrame:
        """Return the induction head of each model: cell, layer, head."""
        return self._heads("induction")

    @cached_property
    def previous(self) -> pd.DataFrame:
        """Return the previous-token head of each model: cell, layer, head."""
        return self._heads("previous")

    def _heads(self, role: str) -> pd.DataFrame:
        places = {name: getattr(HeadRoles.of(cell.log), role) for name, cell in self._cells.items()}
        rows = [(name, *place) for name, place in places.items() if place]
        return pd.DataFrame(rows, columns=["cell", "layer", "head"])

    def __getattr__(self, record: str) -> pd.DataFrame:
        kinds = registry.tables()
        if record not in kinds:
            raise AttributeError(record)
        kind, tables = kinds[record], {name: cell.tables.get(record) for name, cell in self._cells.items()}
        parts = [frame(rows, kind).assign(cell=name) for name, rows in tables.items() if rows]
        found = pd.concat(parts or [frame([], kind).assign(cell="")])
        for about in ("n_layers", "n_heads"):
            if about not in found:  # a record may have its own
                found[about] = self.cells[about].reindex(found["cell"]).to_numpy()
        setattr(self, record, found := found.reset_index(drop=True))
        return found

    def rows(self, record: str) -> list[Any]:
        """Return the rows of a record themselves, in the order of its frame."""
        return [row for cell in self._cells.values() for row in cell.tables.get(record, [])]


def listed(values: Iterable[Any]) -> list[float]:
    """Return the numbers of a column, without missing ones."""
    return [float(value) for value in values if not pd.isna(value)]


def labels(rows: pd.DataFrame, end: str = "") -> list[str]:
    """Return the label of each row's head; ``end`` is "early_" or "late_" for the ends of an edge."""
    return [head_label(*place) for place in zip(rows[f"{end}layer"], rows[f"{end}head"], strict=True)]


def intervals(rows: pd.DataFrame, value: str = "advantage", *ends: str) -> pd.Series:
    """Return "value [low, high]" for each row. ``ends`` are the columns of the interval of ``value``; those of x_nats
    are x_low and x_high or, without them, low and high."""
    stem = value.removesuffix("_nats")
    low, high = ends or [f"{stem}_{end}" if f"{stem}_{end}" in rows else end for end in ("low", "high")]
    shown = zip(rows[value], rows[low], rows[high], strict=True)
    return pd.Series([number(None) if pd.isna(v) else interval(v, a, b) for v, a, b in shown], rows.index, dtype=object)


def count(passes: pd.Series, noun: str = "model") -> str:
    """Return "2 of 3 models": how many are true."""
    return f"{int(passes.sum())} of {plural(len(passes), noun)}"


def passing(claim: ClaimResult) -> str:
    """Return "2 of 3 models": how many pass, of those that the claim judges."""
    return f"{len(claim.values) - len(claim.short)} of {plural(len(claim.values), 'model')}"


FILTERS: dict[str, Callable[..., str]] = {
    "num": lambda value, digits=2: number(None if pd.isna(value) else float(value), digits),
    "span": lambda values, digits=2: span(listed(values), digits),
    "count": count,
    "passing": passing,
}
FOLDERS = FileSystemLoader([Path(__file__).parent, Path(__file__).parent / "themes"])
TEMPLATES = Environment(loader=FOLDERS, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
TEMPLATES.filters |= FILTERS


def paragraphs(name: str, facts: Mapping[str, Any]) -> list[str]:
    """Return the paragraphs that the template ``name``.md, in a folder under report/, makes of ``facts``."""
    parts = re.split(r"\n\s*\n", TEMPLATES.get_template(f"{name}.md").render(facts))
    return [text for part in parts if (text := " ".join(part.split()))]


def section(title: str, name: str, facts: Mapping[str, Any], blocks: Mapping[str, Block], *more: str) -> Section:
    """Return the section that the template themes/``name``.md (or, with a folder in its name, that template) makes of
    ``facts``. Absent ``blocks`` are left out. ``more``: sections with details."""
    texts, shown = [], []
    for text in paragraphs(name if "/" in name else f"themes/{name}", facts):
        if block := re.fullmatch(r"\[(\w+)\]", text):
            shown += [blocks[block[1]]] if block[1] in blocks else []
        else:
            texts.append(text)
    return Section(title, tuple(texts), tuple(b for b in shown if not isinstance(b, Table) or b.rows), more)


def absent(title: str) -> Section:
    """Return the section in place of one that has nothing to show."""
    return Section(title, ("No model here has what this section shows.",))


def from_facts(
    title: str,
    name: str,
    facts: Callable[[Frames], dict[str, Any]],
    **blocks: Callable[[dict[str, Any]], Block],
) -> Callable[[Results, Mapping[str, Figure]], Section]:
    """Return the function that makes a theme's section: the template themes/``name``.md over the ``facts`` of the grid,
    with its figures and the ``blocks`` that are made of the facts; or "absent" without facts."""
    return from_results(title, name, lambda results: facts(Frames(results.cells)), **blocks)


def from_results(
    title: str,
    name: str,
    facts: Callable[[Results], dict[str, Any]],
    **blocks: Callable[[dict[str, Any]], Block],
) -> Callable[[Results, Mapping[str, Figure]], Section]:
    """Like ``from_facts``, for facts that need more than the grid."""

    def of(results: Results, figures: Mapping[str, Figure]) -> Section:
        if not (found := facts(results)):
            return absent(title)
        return section(title, name, found, {**figures, **{block: make(found) for block, make in blocks.items()}})

    return of


def table(
    shown: pd.DataFrame,
    caption: str,
    digits: Mapping[str, int] = MappingProxyType({}),
    kinds: Mapping[str, Kind] = MappingProxyType({}),
    texts: Collection[str] = (),
    **more: Any,
) -> Table:
    """Return a table of the page from a frame of texts, numbers and entries; missing ones are dashes. ``texts`` are
    the columns of words, besides model and head."""
    kinds = {**dict.fromkeys(("model", "head", *texts), "text"), **kinds}

    def entry(name: str, value: Any) -> Entry:
        if isinstance(value, Entry):
            return value
        return Entry(value if isinstance(value, str) else _shown(value, digits.get(name, 2)), kinds.get(name, "number"))

    rows = tuple(tuple(map(entry, shown.columns, row)) for row in shown.itertuples(index=False, name=None))
    return Table(caption, tuple(shown.columns), rows, **more)


def _shown(value: Any, digits: int) -> str:
    if pd.isna(value):
        return number(None)
    return f"{int(value):,}" if isinstance(value, int | np.integer) else number(float(value), digits)


def _best(scores: Iterable[Iterable[float]]) -> float | None:
    return max((score for heads in scores for score in heads), default=None)
