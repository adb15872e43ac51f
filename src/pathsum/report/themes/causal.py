"""The section on interventions: the effect of heads, edges and orders of paths on the loss."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pathsum.claims.causal import edge_label, least_contrast
from pathsum.claims.formatting import head_label, interval, plural, signed, span
from pathsum.figures.causal import ablations
from pathsum.page.document import MODEL, Column, Section, Table, Text
from pathsum.records.ablations import AblationRow, EdgeContrastRow
from pathsum.records.heads import DistanceRow
from pathsum.records.results import Cell, Results
from pathsum.records.terms import TermRow
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Ablation of heads, edges and paths"
Place = tuple[int, int]  # layer, head
ORDERS = ("direct path", "single heads", "virtual heads")
METHOD = (
    "The output of a head is replaced by zero (zero ablation), by its mean over windows at the same position (mean "
    "ablation), or by its output on another window (resample ablation). Everything after the head is recomputed. The "
    "control subtracts a randomly rotated copy of the head's output. An edge is ablated by path patching: only the "
    "part of the later head's queries, keys or values that comes from the earlier head changes, at the norm scale of "
    "the intact model. The table of edges compares the strongest edge of each kind (Q, K or V) with the other edges of "
    "its kind.",
    "The last table sums the paths order by order, with attention patterns fixed: the direct path, then paths through "
    "one head (single heads), then paths through two heads (virtual heads). “Own scale”, as in AMF: each norm's scale "
    "is computed from the paths added so far. “Scales frozen”: each norm's scale is that of the whole model. The "
    "logits then add up exactly, but terms much smaller than the whole residual stream have little effect. The order "
    "counts the heads on a path; the section “Attention scores and losses by content” splits the same sum by how many "
    "heads moved a token's content to another position.",
)


def section(results: Results, figures: Figures) -> Section:
    """Show how much ablation of a head or an edge raises the loss, and how much each order of paths lowers it."""
    cells = [c for c in results.cells.values() if c.summary.n_layers > 1 and c.rows(AblationRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model of two layers to intervene on.",))
    text = (*METHOD, _contrasts(cells), _current_token(cells))
    return Section.of(TITLE, text, (*drawn(figures, "ablations"), heads(cells), edges(cells), terms(cells)))


def _contrasts(cells: Sequence[Cell]) -> str:
    """Compare the K-edges from previous-token heads to induction heads with as many other edges."""
    found = [
        f"{c.name}: {interval(r.difference_nats, r.low, r.high)} ({r.rival}, {plural(len(r.edges.split(',')), 'edge')})"
        for c in cells
        if (r := least_contrast(c))
    ]
    if not found:
        return ""
    windows = span([r.windows for c in cells for r in c.rows(EdgeContrastRow)], 0)
    return (
        "The K-edges from all previous-token heads to all induction heads are cut together. Their rivals are the "
        "Q-edges of the same pairs of heads (Q), their V-edges (V), and the strongest set of as many edges outside the "
        "circuit (outside), if there is one. The circuit consists of the previous-token heads, the heads that attend "
        "two tokens back, and the induction heads. The set outside is chosen on the windows of the table below. All "
        f"are judged on {windows} other windows. The difference is the rise of the loss on the second copy "
        "without the K-edges, minus the rise without the rivals (nats per token, resample ablation, paired by window). "
        "A value above 0 means that the K-edges matter more. The CSV edge_contrasts names all edges. The smallest "
        "difference of each model, with the rivals that give it: "
        f"{'; '.join(found)}."
    )


def _current_token(cells: Sequence[Cell]) -> str:
    """State how much the early head of each model's strongest Q-edge, by resample ablation, attends to its own
    position."""
    shares = []
    for cell in cells:
        if edge := _strongest(cell, "Q").get("resample"):
            early = (edge.early_layer, edge.early_head, 0)
            shares += [d.attention for d in cell.rows(DistanceRow) if (d.layer, d.head, d.distance) == early]
    if not shares:
        return ""
    shown = span([round(share, 3) for share in shares])  # attention below 0.0005 is as good as none
    meaning = (
        "A head with a share near 1 passes the current token on, so a virtual head through it acts like a single head."
        if max(shares) > 0.5
        else "Through this edge, the query thus gets mostly other tokens."
    )
    return (
        "The early head of each model's strongest Q-edge (by resample ablation, table below) gives "
        f"{shown} of its attention to the current token (range over models). {meaning}"
    )


@dataclass(frozen=True)
class Costs:
    """The rise of the second copy's loss (nats per token), by head: under resample ablation of the head, and with its
    pattern replaced by an exact previous-token pattern."""

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
    """Show the rise of the second copy's loss when the previous-token head, the induction head or another head is
    ablated, and its change when a first-layer head gets an exact previous-token pattern."""
    return Table.of(
        [(c, Costs.of(c)) for c in cells],
        MODEL,
        Text("previous-token head", lambda _, x: head_label(*x.previous)),
        Column("without it (nats)", lambda _, x: signed(x.resampled.get(x.previous))),
        Text("induction head", lambda _, x: head_label(*x.induction)),
        Column("without it (nats)", lambda _, x: signed(x.resampled.get(x.induction))),
        Column(
            "without another head (median, nats)",
            lambda _, x: _median(v for at, v in x.resampled.items() if at not in (x.previous, x.induction)),
        ),
        Column("exact pattern in the previous-token head (nats)", lambda _, x: signed(x.perfect.get(x.previous))),
        Column(
            "exact pattern in another first-layer head (nats)",
            lambda _, x: span([v for at, v in x.perfect.items() if at != x.previous]),
        ),
        caption="Rise of the loss on the second copy of repeated random tokens (nats per token, means over "
        f"{_windows(cells)} windows) under resample ablation of one head. Last two columns: change of the same loss "
        "when an exact previous-token pattern replaces the attention pattern of the previous-token head (near 0 if it "
        "has this pattern already) or of another first-layer head (range over heads).",
        csv="ablations.csv",
    )


def edges(cells: Sequence[Cell]) -> Table:
    """Show the edge of each kind (K, Q, V) whose resample ablation raises the loss on the second copy most."""
    return Table.of(
        [(c, kind, by_method) for c in cells for kind in "KQV" if (by_method := _strongest(c, kind))],
        MODEL,
        Text("edge", lambda _, __, by: edge_label(by["resample"])),
        *(
            Column(f"{method} ablation (nats)", lambda _, __, by, method=method: _second_copy(by[method]))
            for method in ("zero", "mean", "resample")
        ),
        Column(
            "other edges of this kind (median, nats)",
            lambda c, kind, by: _median(a.second_copy_nats for a in _resampled(c, kind) if a is not by["resample"]),
        ),
        Column("rise of the held-out loss (nats)", lambda _, __, by: signed(by["resample"].loss_nats)),
        Column("change of prefix matching", lambda _, __, by: signed(by["resample"].prefix_matching)),
        caption="For each kind of edge (K, Q, V), the edge whose resample ablation raises the loss on the second copy "
        f"most, and this rise by ablation method (nats per token, 95 % intervals over {_windows(cells)} windows). Last "
        "three columns, under resample ablation: the median rise over the other edges of this kind; then, for the edge "
        "itself, the change of the held-out loss and of the best head's prefix matching.",
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
        caption="Loss reduction by each order of paths (nats per token, held-out text). Own scale and scales frozen: "
        "the fall of the loss when the order is added to the lower orders, starting from log d_vocab. Removed last: "
        "the rise when the order is removed from the whole sum (scales frozen). 95 % intervals over documents. In "
        "AMF's term importance analysis, virtual heads reduce the loss least. The CSV also has each layer and each "
        "head.",
        csv="terms.csv",
    )


def _resampled(cell: Cell, kind: str) -> list[AblationRow]:
    return [a for a in cell.rows(AblationRow) if (a.target, a.kind, a.method) == ("edge", kind, "resample")]


def _strongest(cell: Cell, kind: str) -> dict[str, AblationRow]:
    """Return the rows, by method, of the edge of ``kind`` whose resample ablation raises the loss on the second copy
    most; empty without edges."""
    most = max(_resampled(cell, kind), key=lambda a: a.second_copy_nats, default=None)
    if most is None:
        return {}
    return {a.method: a for a in cell.rows(AblationRow) if a.target == "edge" and edge_label(a) == edge_label(most)}


def _windows(cells: Sequence[Cell]) -> str:
    return span([a.windows for c in cells for a in c.rows(AblationRow)], 0)


def _second_copy(a: AblationRow) -> str:
    return interval(a.second_copy_nats, a.second_copy_low, a.second_copy_high)


def _median(values: Iterable[float]) -> str:
    known = list(values)
    return signed(statistics.median(known) if known else None)


THEME = Theme(TITLE, section, figures=(ablations,), few_windows=True, tables=("ablations", "terms"))
