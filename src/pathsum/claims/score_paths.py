"""An induction head's scores by pairs of paths: helpers that claims, tables and figures share."""

from __future__ import annotations

import math
from collections.abc import Callable

from pathsum.claims.formatting import head_label
from pathsum.records.results import Cell
from pathsum.records.score_paths import ScorePathRow

DIRECT, POSITION = "direct", "position"


TERMS = ("direct", "Q", "K", "Q&K", "position")  # which side reads an earlier head: neither, queries, keys, both


def term(row: ScorePathRow) -> str:
    """Name the kind of composition of a pair of paths."""
    if POSITION in (row.query, row.key):
        return POSITION
    return {(False, False): "direct", (True, False): "Q", (False, True): "K", (True, True): "Q&K"}[
        row.query != DIRECT, row.key != DIRECT
    ]


def of_induction_head(cell: Cell) -> list[ScorePathRow]:
    """Return its pairs; none where it is in the first layer or scores do not split."""
    head = cell.induction_head()
    return [] if head is None else [r for r in cell.rows(ScorePathRow) if (r.layer, r.head) == (head.layer, head.head)]


def total(rows: list[ScorePathRow], keep: Callable[[ScorePathRow], bool] = lambda _: True) -> float:
    """Preference of these pairs together, nats."""
    return math.fsum(r.preference_nats for r in rows if keep(r))


def through_keys(cell: Cell) -> float:
    """Preference of the pairs whose key comes through the previous-token head alone, nats."""
    previous = cell.previous_token_head()
    name = "" if previous is None else head_label(previous.layer, previous.head)
    return total(of_induction_head(cell), lambda r: r.key == name)


def share_of(cell: Cell, name: str) -> float | None:
    """Share of the preference of the best induction head that a term has; None where it has no preference."""
    rows = of_induction_head(cell)
    whole = total(rows)
    return total(rows, lambda r: term(r) == name) / whole if whole > 0 else None
