"""What is read, by content: helpers that claims, tables and figures share."""

from __future__ import annotations

import math

from pathsum.records.content import ContentRow, ContentScoreRow
from pathsum.records.results import Cell
from pathsum.records.score_paths import MatchingRow

CURRENT, PREVIOUS, TWO_BACK, FURTHER = "0", "1", "2", "3+"  # offsets: whose content is read


def of_induction_head(cell: Cell) -> list[ContentScoreRow]:
    """Return the best induction head's pairs; none where it is in the first layer or scores do not split."""
    head = cell.induction_head()
    return (
        [] if head is None else [r for r in cell.rows(ContentScoreRow) if (r.layer, r.head) == (head.layer, head.head)]
    )


def share(rows: list[ContentScoreRow], query: str, key: str) -> float | None:
    """Return which share of the preference comes from this content at the query against that at the key; None where
    the head has no preference."""
    whole = math.fsum(r.preference_nats for r in rows)
    return math.fsum(r.preference_nats for r in rows if (r.query, r.key) == (query, key)) / whole if whole > 0 else None


def hops(cell: Cell, n: int) -> ContentRow | None:
    """Return what content that moved at ``n`` heads is worth."""
    return next((row for row in cell.rows(ContentRow) if (row.kind, row.content) == ("hops", str(n))), None)


def matching(cell: Cell, layer: int, head: int) -> MatchingRow | None:
    """Return the pair of paths that a head's preference comes by most; None where scores do not split."""
    return next((row for row in cell.rows(MatchingRow) if (row.layer, row.head) == (layer, head)), None)
