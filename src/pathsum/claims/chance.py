"""Chance levels of the claims' measures, computed from the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pathsum.claims.formatting import span
from pathsum.records.heads import LabelRow
from pathsum.records.results import Cell, Results

UNKNOWN = "–"
Level = Callable[[Results], str]


def always(level: str) -> Level:
    """Return a chance level that is ``level`` for all results."""
    return lambda _: level


def uniform(behaviour: str, cells: Callable[[Results], Iterable[Cell]]) -> Level:
    """Return as chance level the score of uniform causal attention for ``behaviour``, a range over ``cells``."""

    def level(results: Results) -> str:
        return span([r.chance for c in cells(results) for r in c.rows(LabelRow) if r.behaviour == behaviour], 3)

    return level


def with_layers(n_layers: int) -> Callable[[Results], Iterable[Cell]]:
    """Select the models with ``n_layers`` layers."""
    return lambda results: results.with_layers(n_layers)


def or_unknown(level: str, after: str, before: str = "") -> str:
    """Return ``level`` between ``before`` and ``after``, or a dash if it is unknown."""
    return UNKNOWN if level == UNKNOWN else f"{before}{level}{after}"
