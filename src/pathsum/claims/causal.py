"""What the framework says of which terms matter, and of the edge that induction depends on."""

from __future__ import annotations

from pathsum.claims import content
from pathsum.claims.formatting import head_label, interval, number
from pathsum.claims.judging import Claim, Finding, each
from pathsum.records.ablations import AblationRow, EdgeContrastRow
from pathsum.records.results import Cell
from pathsum.records.terms import TermRow

METHODS = ("zero", "resample")  # both must say the same


def order(cell: Cell, n: int) -> TermRow | None:
    """All paths through ``n`` heads."""
    return next((t for t in cell.rows(TermRow) if t.order == n and t.layer is None), None)


def virtual_heads_little(cell: Cell) -> Finding:
    """Is the interval of what content of two hops adds below those of no hop and of one?"""
    none, one, two = (content.hops(cell, n) for n in range(3))
    if none is None or one is None or two is None or two.own_scale_nats is None:
        return Finding(None, False, "not measured")
    least = min(row.own_scale_low or 0.0 for row in (none, one))
    by_heads = ", ".join(number(t.own_scale_nats) for n in range(3) if (t := order(cell, n)) is not None)
    note = f"no hop {number(none.own_scale_nats)}, one {number(one.own_scale_nats)}; by heads {by_heads}"
    return Finding(two.own_scale_nats, (two.own_scale_high or 0.0) < least, note)


def strongest_edge(cell: Cell, method: str) -> AblationRow | None:
    """Whose removal hurts the second copy most?"""
    edges = [a for a in cell.rows(AblationRow) if a.target == "edge" and a.method == method]
    return max(edges, key=lambda a: a.second_copy_nats, default=None)


def _key_edge(cell: Cell) -> Finding:
    found = [next((c for c in cell.rows(EdgeContrastRow) if c.method == method), None) for method in METHODS]
    zero, resample = found
    if zero is None or resample is None:
        return Finding(None, False, "no such edge was cut")
    notes = [
        f"{c.method}: minus {c.other_kind}-edge {head_label(c.other_early_layer, c.other_early_head)} → "
        f"{head_label(c.other_layer, c.other_head)} {interval(c.difference_nats, c.low, c.high)}"
        for c in (zero, resample)
    ]
    return Finding(resample.difference_nats, min(zero.low, resample.low) > 0, "; ".join(notes))


def edge_label(edge: AblationRow) -> str:
    """Early head → late head, and through what it is read."""
    early = head_label(edge.early_layer or 0, edge.early_head or 0)
    return f"{early} → {head_label(edge.layer, edge.head)} ({edge.kind})"


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "virtual_heads_little",
        "The direct path and single heads matter most, virtual heads little.",
        "AMF, Term Importance Analysis",
        "fall of the held-out loss when content that two heads moved is added to content that at most one head moved, "
        "attention patterns fixed (nats)",
        "its 95 % interval is below that of content that no head moved and below that of content that one head moved",
        each(2, virtual_heads_little),
    ),
    Claim(
        "induction_key_edge",
        "Induction depends on a head that reads the previous-token head through its keys.",
        "AMF, How Induction Heads Work",
        "rise of the loss on repeated tokens without the K-edge from the previous-token head to the induction head, "
        "minus that without the strongest other edge, paired by window (nats)",
        "its 95 % interval is above 0, with zero and with resample ablation",
        each(2, _key_edge),
    ),
)
