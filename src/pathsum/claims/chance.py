"""Functions that give the chance level of a claim as text: what its measure would be without the effect it tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pathsum.claims.formatting import span
from pathsum.records.heads import LabelRow
from pathsum.records.results import Cell, Results

UNKNOWN = "–"
Level = Callable[[Results], str]


def always(level: str) -> Level:
    """Return a function that gives ``level`` as chance level for all results."""
    return lambda _: level


def uniform(behaviour: str, cells: Callable[[Results], Iterable[Cell]]) -> Level:
    """Return a function that gives, as chance level, the score of uniform causal attention for ``behaviour``."""

    def level(results: Results) -> str:
        levels = [r.chance for c in cells(results) for r in c.rows(LabelRow) if r.behaviour == behaviour]
        return or_unknown(span(levels, 3), " (uniform attention)")

    return level


def with_layers(n_layers: int) -> Callable[[Results], Iterable[Cell]]:
    """Return a function that selects the models of the grid with ``n_layers`` layers."""
    return lambda results: results.with_layers(n_layers)


def or_unknown(level: str, after: str, before: str = "") -> str:
    """Return ``level`` with ``before`` and ``after`` around it, or only a dash if the level is unknown."""
    return UNKNOWN if level == UNKNOWN else f"{before}{level}{after}"
