"""Claims about losses and attention scores split by content (docs/framework.md §2.5), and functions that read these
records."""

from __future__ import annotations

import math

from pathsum.claims import samples
from pathsum.claims.chance import or_unknown
from pathsum.claims.formatting import number, span
from pathsum.claims.judging import Claim, Finding, each, within
from pathsum.claims.score_paths import share_of
from pathsum.records.paths import ContentRow, ContentScoreRow, MatchingRow, TermRow
from pathsum.records.results import Cell, Results

CURRENT, PREVIOUS, TWO_BACK, FURTHER = "0", "1", "2", "3+"  # offsets: how many tokens back the content comes from
MOST = 0.5  # half of the preference: more than all other pairs of offsets together
NO_PREFERENCE = "no preference for the token after the earlier occurrence"
FIRST_LAYER = "the best prefix-matching head is in the first layer"


def of_induction_head(cell: Cell) -> list[ContentScoreRow]:
    """Return the content scores of the induction head, one row per pair of offsets."""
    return cell.of_induction_head(ContentScoreRow)


def share(rows: list[ContentScoreRow], query: str, key: str) -> float | None:
    """Return the share of one pair of offsets, ``query`` and ``key``, in a head's preference (docs/framework.md
    §2.4)."""
    whole = math.fsum(r.preference_nats for r in rows)
    return math.fsum(r.preference_nats for r in rows if (r.query, r.key) == (query, key)) / whole if whole > 0 else None


def hops(cell: Cell, n: int) -> ContentRow | None:
    """Return the loss reduction by content that ``n`` heads moved to another position. None if it was not measured."""
    return next((row for row in cell.rows(ContentRow) if (row.kind, row.content) == ("hops", str(n))), None)


def matching(cell: Cell, layer: int, head: int) -> MatchingRow | None:
    """Return the pair of paths with the largest part of a head's preference (docs/framework.md §2.4)."""
    return next((row for row in cell.rows(MatchingRow) if (row.layer, row.head) == (layer, head)), None)


def order(cell: Cell, n: int) -> TermRow | None:
    """Return the loss reduction by all paths through exactly ``n`` heads. None if it was not measured."""
    return next((t for t in cell.rows(TermRow) if t.order == n and t.layer is None), None)


def virtual_heads_little(cell: Cell) -> Finding:
    """Judge whether content that two heads moved reduces the loss less than content that one head moved, and less than
    content that no head moved."""
    none, one, two = (hops(cell, n) for n in range(3))
    if none is None or one is None or two is None or two.own_scale_nats is None:
        return Finding(None, False, "not measured")
    least = min(row.own_scale_low or 0.0 for row in (none, one))
    by_heads = ", ".join(f"{n}: {number(t.own_scale_nats)}" for n in range(3) if (t := order(cell, n)) is not None)
    hopped = f"no hop {number(none.own_scale_nats)}, one hop {number(one.own_scale_nats)}"
    note = f"{hopped}; by number of heads on the path, {by_heads}"
    return Finding(two.own_scale_nats, (two.own_scale_high or 0.0) < least, note)


def _current_against_previous(results: Results) -> dict[str, Finding]:
    return {c.name: _by_content(c) for c in results.with_layers(2) if c.rows(ContentScoreRow)}


def _by_content(cell: Cell) -> Finding:
    rows = of_induction_head(cell)
    value = share(rows, CURRENT, PREVIOUS)
    if value is None:
        return Finding(None, False, NO_PREFERENCE if rows else FIRST_LAYER)
    two = share(rows, PREVIOUS, TWO_BACK)
    by_heads = f"through heads: keys only {number(share_of(cell, 'K'))}, both sides {number(share_of(cell, 'Q&K'))}"
    row = next(r for r in rows if (r.query, r.key) == (CURRENT, PREVIOUS))
    note = f"previous token (query) with two tokens back (key) {number(two)}; {by_heads}"
    return Finding(value, value >= MOST, note, within(MOST, row.share_low, row.share_high))


def _share_of_one_pair(results: Results) -> str:
    """Format the share that each pair of offsets would have if all contributed equally, as a range over models."""
    pairs = [rows for c in results.with_layers(2) if (rows := of_induction_head(c))]
    return or_unknown(span([1 / len(rows) for rows in pairs]), " (all pairs of offsets equal)")


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
        _current_against_previous,
        needs_induction_head=True,
        chance=_share_of_one_pair,
        sample=samples.REPEATS,
        unit="share of the preference",
    ),
)
