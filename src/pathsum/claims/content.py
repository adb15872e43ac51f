"""Claims about losses and attention scores split by content (docs/framework.md §2.5), and the parts of an induction
head's preference, by content and by pairs of paths (§2.3, §2.4)."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from pathsum.claims import samples
from pathsum.claims.formatting import number, span
from pathsum.claims.judging import Claim, Finding, each, within
from pathsum.records.paths import ContentRow, ContentScoreRow, ScorePathRow, TermRow
from pathsum.records.results import Cell, Results

CURRENT, PREVIOUS, TWO_BACK, FURTHER = "0", "1", "2", "3+"  # offsets: how many tokens back the content comes from
MOST = 0.5  # half of the preference: more than all other pairs of offsets together
DIRECT, POSITION = "direct", "position"
TERMS = ("direct", "Q", "K", "Q&K", "position")  # sides that read a head: none, queries, keys, both; or a position

R = TypeVar("R", ContentScoreRow, ScorePathRow)


def term(row: ScorePathRow) -> str:
    """Return the kind of a pair of paths, one of TERMS (docs/framework.md §2.3)."""
    if POSITION in (row.query, row.key):
        return POSITION
    sides = [side for side, path in (("Q", row.query), ("K", row.key)) if path != DIRECT]
    return "&".join(sides) or DIRECT


def share(rows: Sequence[R], keep: Callable[[R], bool]) -> float | None:
    """Return the share of a head's preference (docs/framework.md §2.4) in the rows that ``keep`` accepts. None unless
    the head has a preference."""
    whole = math.fsum(r.preference_nats for r in rows)
    return math.fsum(r.preference_nats for r in rows if keep(r)) / whole if whole > 0 else None


def pair_share(cell: Cell, query: str, key: str) -> float | None:
    """Return the share of one pair of offsets in the preference of the induction head."""
    return share(cell.of_induction_head(ContentScoreRow), lambda r: (r.query, r.key) == (query, key))


def term_share(cell: Cell, name: str) -> float | None:
    """Return the share of pairs of paths of one kind, of TERMS, in the preference of the induction head."""
    return share(cell.of_induction_head(ScorePathRow), lambda r: term(r) == name)


def hops(cell: Cell, n: int) -> ContentRow | None:
    """Return the loss reduction by content that ``n`` heads moved to another position. None if it was not measured."""
    return next((row for row in cell.rows(ContentRow) if (row.kind, row.content) == ("hops", str(n))), None)


def virtual_heads_little(cell: Cell) -> Finding:
    """Judge whether content that two heads moved reduces the loss less than content that one head moved, and less than
    content that no head moved."""
    none, one, two = (hops(cell, n) for n in range(3))
    if none is None or one is None or two is None or two.own_scale_nats is None:
        return Finding(None, False, "not measured")
    least = min(row.own_scale_low or 0.0 for row in (none, one))
    orders = sorted((t.order, t.own_scale_nats) for t in cell.rows(TermRow) if t.layer is None and t.order < 3)
    by_heads = ", ".join(f"{n}: {number(nats)}" for n, nats in orders)
    hopped = f"no hop {number(none.own_scale_nats)}, one hop {number(one.own_scale_nats)}"
    note = f"{hopped}; by number of heads on the path, {by_heads}"
    return Finding(two.own_scale_nats, (two.own_scale_high or 0.0) < least, note)


def _current_against_previous(cell: Cell) -> Finding:
    rows = {(r.query, r.key): r for r in cell.of_induction_head(ContentScoreRow)}
    value = pair_share(cell, CURRENT, PREVIOUS)
    if value is None:
        why = "no preference for the token after the earlier occurrence"
        return Finding(None, False, why if rows else "the best prefix-matching head is in the first layer")
    two, keys, both = pair_share(cell, PREVIOUS, TWO_BACK), term_share(cell, "K"), term_share(cell, "Q&K")
    by_heads = f"through heads: keys only {number(keys)}, both sides {number(both)}"
    note = f"previous token (query) with two tokens back (key) {number(two)}; {by_heads}"
    row = rows[CURRENT, PREVIOUS]
    return Finding(value, value >= MOST, note, within(MOST, row.share_low, row.share_high))


def _share_of_one_pair(results: Results) -> str:
    """Format the share that each pair of offsets would have if all contributed equally, as a range over models."""
    pairs = [rows for c in results.of_depth(2) if (rows := c.of_induction_head(ContentScoreRow))]
    return samples.or_unknown(span([1 / len(rows) for rows in pairs]), " (all pairs of offsets equal)")


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "virtual_heads_little",
        "The direct path and single heads matter most, virtual heads little.",
        "AMF, Term Importance Analysis",
        "fall of the held-out loss when content that two heads moved is added to content that at most one head moved, "
        "attention patterns fixed (nats)",
        "its 95 % interval is below that of content that no head moved and below that of content that one head moved",
        each(2, virtual_heads_little),
        papers="virtual heads least",
        sample=samples.over(lambda cell: [r.windows for n in range(3) if (r := hops(cell, n))], "held-out windows"),
        unit="nats per token",
    ),
    Claim(
        "induction_scores_k",
        "An induction head's scores come from K-composition: its query reads the current token, its key the previous "
        "token.",
        "AMF, How Induction Heads Work",
        "share of the best induction head's preference for the token after the earlier occurrence that compares the "
        "query's current token with the key's previous token, whatever heads carried either",
        f"≥ {MOST}",
        each(2, _current_against_previous, where=lambda cell: cell.rows(ContentScoreRow)),
        needs_induction_head=True,
        chance=_share_of_one_pair,
        sample=samples.REPEATS,
        unit="share of the preference",
    ),
)
