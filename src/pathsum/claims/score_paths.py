"""Scores of induction heads by pairs of paths, one to the query and one to the key (docs/framework.md §2.3)."""

from __future__ import annotations

import math
from collections.abc import Callable

from pathsum.records.paths import ScorePathRow
from pathsum.records.results import Cell

DIRECT, POSITION = "direct", "position"
TERMS = ("direct", "Q", "K", "Q&K", "position")  # sides that read a head: none, queries, keys, both; or a position


def term(row: ScorePathRow) -> str:
    """Return the kind of a pair of paths, one of TERMS (docs/framework.md §2.3)."""
    if POSITION in (row.query, row.key):
        return POSITION
    sides = [side for side, path in (("Q", row.query), ("K", row.key)) if path != DIRECT]
    return "&".join(sides) or DIRECT


def of_induction_head(cell: Cell) -> list[ScorePathRow]:
    """Return the scores of the induction head, one row per pair of paths."""
    return cell.of_induction_head(ScorePathRow)


def total(rows: list[ScorePathRow], keep: Callable[[ScorePathRow], bool] = lambda _: True) -> float:
    """Sum the preference (docs/framework.md §2.4) over the pairs that ``keep`` accepts, in nats."""
    return math.fsum(r.preference_nats for r in rows if keep(r))


def share_of(cell: Cell, name: str) -> float | None:
    """Return the share of the induction head's preference that pairs of paths of kind ``name``, one of TERMS, carry."""
    rows = of_induction_head(cell)
    whole = total(rows)
    return total(rows, lambda r: term(r) == name) / whole if whole > 0 else None
