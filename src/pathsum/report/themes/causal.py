"""By intervention: what the losses depend on."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pathsum.claims.causal import edge_label
from pathsum.claims.formatting import head_label, interval, number, span
from pathsum.records.ablations import AblationRow, EdgeContrastRow
from pathsum.records.heads import DistanceRow
from pathsum.records.results import Cell, Results
from pathsum.records.terms import TermRow
from pathsum.report.document import Entry, Section, Table
from pathsum.report.figures.causal import ablations
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "By intervention"
ORDERS = ("direct path", "single heads", "virtual heads")


def section(results: Results, figures: Figures) -> Section:
    """What is lost without a head or an edge, and what each order of paths is worth."""
    cells = [c for c in results.cells.values() if c.summary.n_layers > 1 and c.rows(AblationRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model of two layers to intervene on.",), ())
    method = (
        "What a head writes is replaced by zeros, by its mean over windows, or by what it writes in another window; "
        "everything after it is computed again. The control takes away what a head of the same pattern and size would "
        "have written in random directions. An edge is one head's writes as seen by the queries, keys or values of "
        "one later head alone, read at the scale of norm that it had; its control is the other edges of its kind."
    )
    worth = (
        "The table of terms fixes the attention patterns and adds the direct path, then single heads, then virtual "
        "heads. At their own scale, as AMF does it, norms see only the orders added so far; with scales frozen at the "
        "whole model's, terms add up exactly, and one that is small beside the rest of the residual stream says "
        "little. Orders count the heads on a path; under “What is read, by content” the same sum is split by how often "
        "content moved."
    )
    shown = drawn(figures, "ablations")
    said = (method, worth, *_contrasts(cells), *_carriers(cells))
    return Section(TITLE, said, (*shown, heads(cells), edges(cells), terms(cells)))


def heads(cells: Sequence[Cell]) -> Table:
    """What either head of the mechanism is worth, the others beside them; and what a perfect pattern changes."""
    columns = (
        "cell",
        "previous-token head",
        "without it",
        "induction head",
        "without it",
        "without another (median)",
        "with a perfect pattern",
        "another first-layer head with it",
    )
    caption = (
        "Rise of the loss on the second copy of repeated random tokens (nats per token) with another window's writes "
        "in a head's place. Last: with a perfect previous-token pattern put into the previous-token head, which "
        "changes little where it has one already, and into other first-layer heads instead of their own (range over "
        "those heads)."
    )
    return Table(caption, columns, tuple(_cell(c) for c in cells), "ablations.csv")


def _cell(cell: Cell) -> tuple[Entry, ...]:
    ours = [(h.layer, h.head) for h in (cell.previous_token_head(), cell.induction_head()) if h is not None]
    cost = {(a.layer, a.head): a.second_copy_nats for a in _heads(cell)}
    others = [v for place, v in cost.items() if place not in ours]
    ideal = {(a.layer, a.head): a.second_copy_nats for a in cell.rows(AblationRow) if a.target == "pattern"}
    own = ideal.pop(ours[0], None) if ours else None
    each = [(head_label(*place), _signed(cost[place]) if place in cost else "–") for place in ours]
    numbers = (
        _signed(statistics.median(others)) if others else "–",
        "–" if own is None else _signed(own),
        span(list(ideal.values())),
    )
    return (
        Entry(cell.name),
        *(entry for name, rise in each for entry in (Entry(name), Entry(rise, "number"))),
        *(Entry(n, "number") for n in numbers),
    )


def _contrasts(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Compare the edge that induction is said to need with the strongest other one."""
    found = [(c, r) for c in cells for r in c.rows(EdgeContrastRow) if r.method == "resample"]
    if not found:
        return ()
    told = "; ".join(
        f"{c.name} {interval(r.difference_nats, r.low, r.high)} (against {r.other_kind} "
        f"{head_label(r.other_early_layer, r.other_early_head)} → {head_label(r.other_layer, r.other_head)})"
        for c, r in found
    )
    return (
        "The K-edge from the previous-token head to the induction head against the strongest other edge: rise of the "
        "second copy's loss without the former minus that without the latter, paired by window (nats per token, "
        f"resample ablation, 95 % interval; both heads are chosen on other data): {told}.",
    )


def _carriers(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Whether the strongest Q-edges come from heads that attend to the present token."""
    shares = []
    for cell in cells:
        costs = [a for a in cell.rows(AblationRow) if (a.target, a.kind, a.method) == ("edge", "Q", "resample")]
        edge = max(costs, key=lambda a: a.second_copy_nats)
        early = (edge.early_layer or 0, edge.early_head or 0)
        shares += [d.attention for d in cell.rows(DistanceRow) if (d.layer, d.head, d.distance) == (*early, 0)]
    if not shares:
        return ()
    return (
        f"The head on the strongest Q-edge attends to the current token itself by {span(shares)} (range over "
        "models). Where that is near "
        "1, the head carries the token in place of the embedding, and virtual heads through it do what single heads "
        "would.",
    )


def _heads(cell: Cell) -> list[AblationRow]:
    return [a for a in cell.rows(AblationRow) if (a.target, a.method, a.patterns) == ("head", "resample", "recomputed")]


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def edges(cells: Sequence[Cell]) -> Table:
    """Of each kind, the edge that the second copy depends on most."""
    columns = (
        "cell",
        "edge",
        "zeros (nats)",
        "mean (nats)",
        "another window (nats)",
        "other edges of its kind",
        "held-out loss (nats)",
        "prefix matching",
    )
    fields = tuple(_edge(cell, kind) for cell in cells for kind in "KQV" if _of_kind(cell, kind))
    caption = (
        "The edge of each kind whose removal raises the loss on the second copy most, with another window's writes in "
        "its place; by what stands there, with 95 % intervals. Last: other edges' median, and the change of the "
        "held-out loss and of the best prefix matching, by another window's."
    )
    return Table(caption, columns, fields, "ablations.csv")


def _of_kind(cell: Cell, kind: str) -> dict[tuple[str, str], AblationRow]:
    """By edge and by what stands in its place."""
    return {(edge_label(a), a.method): a for a in cell.rows(AblationRow) if a.target == "edge" and a.kind == kind}


def _edge(cell: Cell, kind: str) -> tuple[Entry, ...]:
    found = _of_kind(cell, kind)
    costs = {name: a.second_copy_nats for (name, method), a in found.items() if method == "resample"}
    strongest = max(costs, key=lambda name: costs[name])
    others = [v for name, v in costs.items() if name != strongest]
    by_method = [found[strongest, method] for method in ("zero", "mean", "resample")]
    last = by_method[-1]
    return (
        Entry(cell.name),
        Entry(strongest),
        *(_interval(a.second_copy_nats, a.second_copy_low, a.second_copy_high) for a in by_method),
        Entry(_signed(statistics.median(others)) if others else "–", "number"),
        Entry(_signed(last.loss_nats), "number"),
        Entry(_signed(last.prefix_matching), "number"),
    )


def terms(cells: Sequence[Cell]) -> Table:
    """What each order is worth."""
    columns = ("cell", "order", "paths", "own scale (nats)", "scales frozen (nats)", "removed last (nats)")
    fields = tuple(
        (
            Entry(cell.name),
            Entry(ORDERS[min(t.order, 2)] if t.order < 3 else f"paths of {t.order} heads"),
            Entry(str(t.paths), "number"),
            _interval(t.own_scale_nats, t.own_scale_low, t.own_scale_high),
            _interval(t.added_nats, t.added_low, t.added_high),
            _interval(t.removed_nats, t.removed_low, t.removed_high),
        )
        for cell in cells
        for t in cell.rows(TermRow)
        if t.layer is None
    )
    caption = (
        "What each order of paths is worth on held-out text: the fall of the loss when it joins the lower orders "
        "(from log d_vocab), and its rise when it is taken from all. 95 % intervals over windows. By layer and by head "
        "in the CSV."
    )
    return Table(caption, columns, fields, "terms.csv")


def _interval(value: float | None, low: float | None, high: float | None) -> Entry:
    return Entry(interval(value, low, high), "number")


THEME = Theme(TITLE, section, figures=(ablations,), tables=("ablations", "terms"))
