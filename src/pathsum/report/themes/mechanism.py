"""Two layers: which heads make induction, and which heads read which."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.claims.formatting import head_label, number, span
from pathsum.records.composition import COMPOSITION_RULE, CompositionRow
from pathsum.records.results import Cell
from pathsum.report.document import Entry, Table


def paragraphs(cells: Sequence[Cell]) -> tuple[str, ...]:
    found = [(p, i) for c in cells if (p := c.previous_token_head()) and (i := c.formed_induction_head())]
    needs = (
        "Two layers let heads read each other. An induction head needs a first-layer head that looks one token back "
        "and a second-layer head that reads it through its keys: then it finds what followed the present token last "
        "time, and copies it."
    )
    if not found:
        return (f"{needs} In none of {len(cells)} models has one formed.",)
    return (
        f"{needs} It has formed in {len(found)} of {len(cells)} models: the first looks at the token before with "
        f"{span([p.previous_token for p, _ in found])} of its attention, the second at what followed with "
        f"{span([i.prefix_matching for _, i in found])}.",
    )


def tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """The two heads of each cell, and every edge that composes."""
    edges = [(c, e) for c in cells for e in c.rows(CompositionRow) if e.composes]
    mechanism = Table(
        "The heads of the mechanism: the first-layer head that looks most at the token before, the head of best prefix "
        "matching (chance: the table of all heads), and by how much the latter's keys read the former above chance, "
        "without its mean write (chance in brackets).",
        ("cell", "previous-token head", "looks one back", "induction head", "prefix matching", "K-composition"),
        tuple(_mechanism(c) for c in cells),
        source="mechanism",
    )
    if not edges:
        return (mechanism,)
    shown = Table(
        f"Every edge that composes, by its score times the head's size. An edge composes if {COMPOSITION_RULE}. Score: "
        "norm of the product of what one head writes and the other reads, over the product of their norms (0..1). q "
        "with < is a bound: no random rotation came as far. Every other edge is in the CSV, with two-sided p- and "
        "q-values.",
        ("cell", "edge", "read by", "score", "without mean write", "size", "chance", "q (one-sided)"),
        tuple(_edge(c, e) for c, e in sorted(edges, key=lambda pair: -pair[1].weight)),
        "composition.csv",
    )
    return mechanism, shown


def _mechanism(cell: Cell) -> tuple[Entry, ...]:
    previous, induction = cell.previous_token_head(), cell.induction_head()
    if previous is None or induction is None:
        return (Entry(cell.name), *[Entry("–")] * 5)
    ends = ("K", previous.layer, previous.head, induction.layer, induction.head)
    edges = [
        e for e in cell.rows(CompositionRow) if (e.kind, e.early_layer, e.early_head, e.late_layer, e.late_head) == ends
    ]
    return (
        Entry(cell.name),
        Entry(head_label(previous.layer, previous.head)),
        Entry(number(previous.previous_token), "number"),
        Entry(head_label(induction.layer, induction.head)),
        Entry(number(induction.prefix_matching), "number"),
        Entry("".join(f"{number(e.varying - e.chance)} ({number(e.chance)})" for e in edges) or "–", "number"),
    )


def _edge(cell: Cell, e: CompositionRow) -> tuple[Entry, ...]:
    arrow = f"{head_label(e.early_layer, e.early_head)} → {head_label(e.late_layer, e.late_head)}"
    return (
        Entry(cell.name),
        Entry(arrow),
        Entry({"Q": "queries", "K": "keys", "V": "values"}[e.kind]),
        *(Entry(number(x, 3), "number") for x in (e.value, e.varying, e.size, e.chance)),
        Entry(f"{'< ' if e.varying_at_floor else ''}{number(e.varying_q_value, 3)}", "number"),
    )
