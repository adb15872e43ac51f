"""What the framework says of the terms in an induction head's scores."""

from __future__ import annotations

import math
from collections.abc import Callable

from pathsum.claims import content
from pathsum.claims.formatting import head_label, number
from pathsum.claims.judging import Claim, Finding, within
from pathsum.records.content import ContentScoreRow
from pathsum.records.results import Cell, Results
from pathsum.records.score_paths import ScorePathRow

DIRECT, POSITION = "direct", "position"
TERMS = ("direct", "Q", "K", "Q&K", "position")  # which side reads an earlier head: neither, queries, keys, both


def term(row: ScorePathRow) -> str:
    """Which kind of composition is a pair of paths?"""
    if POSITION in (row.query, row.key):
        return POSITION
    return {(False, False): "direct", (True, False): "Q", (False, True): "K", (True, True): "Q&K"}[
        row.query != DIRECT, row.key != DIRECT
    ]


def of_induction_head(cell: Cell) -> list[ScorePathRow]:
    """Its pairs; none where it is in the first layer or scores do not split."""
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


def _current_against_previous(results: Results) -> dict[str, Finding]:
    return {c.name: _by_content(c) for c in results.with_layers(2) if c.rows(ContentScoreRow)}


def _by_content(cell: Cell) -> Finding:
    rows = content.of_induction_head(cell)
    value = content.share(rows, content.CURRENT, content.PREVIOUS)
    if value is None:
        return Finding(None, False, "prefers no such key" if rows else "the best prefix-matching head is in layer 0")
    two = content.share(rows, content.PREVIOUS, content.TWO_BACK)
    by_heads = f"by heads K {number(share_of(cell, 'K'))}, Q&K {number(share_of(cell, 'Q&K'))}"
    row = next(r for r in rows if (r.query, r.key) == (content.CURRENT, content.PREVIOUS))
    note = f"previous token against two tokens back {number(two)}; {by_heads}"
    return Finding(value, value >= 0.5, note, within(0.5, row.share_low, row.share_high))


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "induction_scores_k",
        "An induction head's scores come from K-composition: its query reads the current token, its key the previous "
        "token.",
        "AMF, How Induction Heads Work",
        "share of the best induction head's preference for the token after the earlier occurrence that compares the "
        "query's current token with the key's previous token, whatever heads carried either",
        "≥ 0.5",
        _current_against_previous,
    ),
)
