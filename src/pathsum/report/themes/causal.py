"""The dependence of the losses on heads, edges and orders of paths, by intervention."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pathsum.claims.causal import edge_label
from pathsum.claims.formatting import head_label, interval, number, span
from pathsum.records.ablations import AblationRow, EdgeContrastRow
from pathsum.records.heads import DistanceRow
from pathsum.records.results import Cell, Results
from pathsum.records.terms import TermRow
from pathsum.report.document import MODEL, Column, Section, Table, Text
from pathsum.report.figures.causal import ablations
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "By intervention"
Place = tuple[int, int]  # layer, head
ORDERS = ("direct path", "single heads", "virtual heads")
METHOD = (
    "The output of a head is replaced by zeros (zero ablation), by its mean over windows (mean ablation), or by its "
    "output on another window (resample ablation); everything after it is recomputed. The control removes what a head "
    "of the same pattern and size would have written in random directions. An edge is what the queries, keys or values "
    "of one later head read of one earlier head, at the norm scale of the intact model; its control is the other edges "
    "of the same kind.",
    "The table of terms fixes the attention patterns and adds the direct path, then single heads, then virtual heads. "
    "At their own scale, as in AMF, norms see only the orders added so far. With scales frozen at those of the whole "
    "model, terms add up exactly, but a term much smaller than the rest of the residual stream has little effect. "
    "Orders count the heads on a path; the section “What is read, by content” splits the same sum by how often content "
    "moved.",
)


def section(results: Results, figures: Figures) -> Section:
    """Show how much ablating a head or an edge raises the loss, and how much each order of paths lowers it."""
    cells = [c for c in results.cells.values() if c.summary.n_layers > 1 and c.rows(AblationRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model of two layers to intervene on.",))
    text = (*METHOD, _contrasts(cells), _current_token(cells))
    return Section.of(TITLE, text, (*drawn(figures, "ablations"), heads(cells), edges(cells), terms(cells)))


def _contrasts(cells: Sequence[Cell]) -> str:
    """Compare the edge that induction is claimed to need with the strongest other one."""
    found = [
        f"{c.name} {interval(r.difference_nats, r.low, r.high)} (against {r.other_kind} "
        f"{head_label(r.other_early_layer, r.other_early_head)} → {head_label(r.other_layer, r.other_head)})"
        for c in cells
        for r in c.rows(EdgeContrastRow)
        if r.method == "resample"
    ]
    if not found:
        return ""
    return (
        "The K-edge from the previous-token head to the induction head against the strongest other edge: rise of the "
        "second copy's loss without the former minus that without the latter, paired by window (nats per token, "
        f"resample ablation, 95 % interval; both heads were chosen on other data): {'; '.join(found)}."
    )


def _current_token(cells: Sequence[Cell]) -> str:
    """Say whether the strongest Q-edges come from heads that attend to the current token."""
    shares = []
    for cell in cells:
        edge = max(_resampled(cell, "Q"), key=lambda a: a.second_copy_nats)
        early = (edge.early_layer, edge.early_head, 0)
        shares += [d.attention for d in cell.rows(DistanceRow) if (d.layer, d.head, d.distance) == early]
    if not shares:
        return ""
    meaning = (
        "Where this share is near 1, that head passes the current token on, so a virtual head through it acts like a "
        "single head."
        if max(shares) > 0.5
        else "It therefore does not merely pass on the current token."
    )
    return (
        f"The earlier head of the strongest Q-edge gives {span(shares)} of its attention to the current token (range "
        f"over models). {meaning}"
    )


@dataclass(frozen=True)
class Costs:
    """The rise of the loss on the second copy by head: with its writes resampled, and with a perfect pattern."""

    previous: Place
    induction: Place
    resampled: dict[Place, float]
    perfect: dict[Place, float]

    @classmethod
    def of(cls, cell: Cell) -> Costs:
        previous, induction = cell.previous_token_head(), cell.induction_head()
        assert previous is not None
        assert induction is not None
        rows = cell.rows(AblationRow)
        resampled = [a for a in rows if (a.target, a.method, a.patterns) == ("head", "resample", "recomputed")]
        return cls(
            (previous.layer, previous.head),
            (induction.layer, induction.head),
            {(a.layer, a.head): a.second_copy_nats for a in resampled},
            {(a.layer, a.head): a.second_copy_nats for a in rows if a.target == "pattern"},
        )


def heads(cells: Sequence[Cell]) -> Table:
    """Show the effect of either head of the mechanism and of the others, and that of a perfect pattern."""
    return Table.of(
        [(c, Costs.of(c)) for c in cells],
        MODEL,
        Text("previous-token head", lambda _, x: head_label(*x.previous)),
        Column("without it", lambda _, x: _signed(x.resampled.get(x.previous))),
        Text("induction head", lambda _, x: head_label(*x.induction)),
        Column("without it", lambda _, x: _signed(x.resampled.get(x.induction))),
        Column(
            "without another (median)",
            lambda _, x: _median(v for at, v in x.resampled.items() if at not in (x.previous, x.induction)),
        ),
        Column("with a perfect pattern", lambda _, x: _signed(x.perfect.get(x.previous))),
        Column(
            "another first-layer head with it",
            lambda _, x: span([v for at, v in x.perfect.items() if at != x.previous]),
        ),
        caption="Rise of the loss on the second copy of repeated random tokens (nats per token) under resample "
        "ablation of a head. Last: with a perfect previous-token pattern put into the previous-token head, which "
        "changes little where the head has one already, and into other first-layer heads (range over those heads).",
        csv="ablations.csv",
    )


def edges(cells: Sequence[Cell]) -> Table:
    """Show the edge of each kind that the second copy depends on most."""
    return Table.of(
        [(c, kind, by_method) for c in cells for kind in "KQV" if (by_method := _strongest(c, kind))],
        MODEL,
        Text("edge", lambda _, __, by: edge_label(by["resample"])),
        *(
            Column(f"{method} ablation (nats)", lambda _, __, by, method=method: _second_copy(by[method]))
            for method in ("zero", "mean", "resample")
        ),
        Column(
            "other edges of its kind",
            lambda c, kind, by: _median(a.second_copy_nats for a in _resampled(c, kind) if a is not by["resample"]),
        ),
        Column("held-out loss (nats)", lambda _, __, by: _signed(by["resample"].loss_nats)),
        Column("prefix matching", lambda _, __, by: _signed(by["resample"].prefix_matching)),
        caption="The edge of each kind whose resample ablation raises the loss on the second copy most, by ablation "
        "method, with 95 % intervals. Last, under resample ablation: the median of the other edges, and the change of "
        "the held-out loss and of the best prefix matching.",
        csv="ablations.csv",
    )


def terms(cells: Sequence[Cell]) -> Table:
    """Show the loss reduction of each order of paths."""
    return Table.of(
        [(c, t) for c in cells for t in c.rows(TermRow) if t.layer is None],
        MODEL,
        Text("order", lambda _, t: ORDERS[t.order] if t.order < len(ORDERS) else f"paths of {t.order} heads"),
        Column("paths", lambda _, t: str(t.paths)),
        Column("own scale (nats)", ("own_scale_nats", "own_scale_low", "own_scale_high")),
        Column("scales frozen (nats)", ("added_nats", "added_low", "added_high")),
        Column("removed last (nats)", ("removed_nats", "removed_low", "removed_high")),
        caption="The effect of each order of paths on the held-out loss: its fall when the order joins the lower "
        "orders (from log d_vocab), and its rise when the order is taken from all. 95 % intervals over windows. By "
        "layer and by head in the CSV.",
        csv="terms.csv",
    )


def _resampled(cell: Cell, kind: str) -> list[AblationRow]:
    return [a for a in cell.rows(AblationRow) if (a.target, a.kind, a.method) == ("edge", kind, "resample")]


def _strongest(cell: Cell, kind: str) -> dict[str, AblationRow]:
    """Return the edge of ``kind`` that costs most when it is resampled, by method; empty without edges."""
    most = max(_resampled(cell, kind), key=lambda a: a.second_copy_nats, default=None)
    if most is None:
        return {}
    return {a.method: a for a in cell.rows(AblationRow) if a.target == "edge" and edge_label(a) == edge_label(most)}


def _second_copy(a: AblationRow) -> str:
    return interval(a.second_copy_nats, a.second_copy_low, a.second_copy_high)


def _signed(value: float | None) -> str:
    return "–" if value is None else ("+" if value > 0 else "") + number(value)


def _median(values: Iterable[float]) -> str:
    known = list(values)
    return _signed(statistics.median(known) if known else None)


THEME = Theme(TITLE, section, figures=(ablations,), tables=("ablations", "terms"))
