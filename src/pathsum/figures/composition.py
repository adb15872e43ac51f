"""The figure of composition: a graph of heads, with an edge where a composition score exceeds chance."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from pathsum.claims.formatting import head_label, number
from pathsum.claims.reliability import reliability
from pathsum.figures import symbols
from pathsum.figures.base import Figure, picture, stacked
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results

KINDS = {"Q": "queries", "K": "keys", "V": "values"}
MOST_CELLS = 3
WIDEST = 7.0  # width of the strongest edge, in points
NODE = 25.0  # diameter of a head, in points


def composition(results: Results) -> Figure | None:
    """Draw Q-, K- and V-composition as edges between heads, one row of panels for each model of ``_shown``. None
    without composition."""
    shown = _shown(results)
    if not shown:
        return None
    data = stacked(results.cells.values(), CompositionRow)
    edges = [e for c in results.cells.values() for e in c.rows(CompositionRow)]
    data["above_chance"] = data["varying"] - data["chance"]
    for column, name in (("composes", "composes"), ("below_chance", "below"), ("p_is_a_bound", "at_floor")):
        data[column] = [getattr(e, name) for e in edges]
    drawn = data[data["cell"].isin([c.name for c in shown])]
    strongest = max(float(drawn["above_chance"].max()), 1e-9)

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots(len(shown), len(KINDS), squeeze=False)
        for panels, cell in zip(axes, shown, strict=True):
            for ax, kind in zip(panels, KINDS, strict=True):
                _graph(ax, cell, kind, strongest)
        canvas.legend(handles=_legend(strongest), loc="outside lower center", ncols=4, handlelength=2.6)

    counts = "; ".join(
        f"{k}: {len(part)} edges, {int(part['composes'].sum())} composing and {int(part['below_chance'].sum())} below"
        for k in KINDS
        for part in [data[data["kind"] == k]]
    )
    caption = (
        "Each circle is a head; later layers are above. The width of an edge is its composition score minus chance, "
        "computed without the early head's mean write. Black: the first-layer head that attends most to the previous "
        "token; gray: the induction head. In an induction circuit, a wide edge of K-composition joins these two heads. "
        "Pale edges are above chance, but do not compose (rule in the text). Panel titles count the edges that "
        "compose. Other edges are not drawn. In all models (“below”: significantly below chance, with the mean write "
        f"included): {counts}. The rule has {reliability(results, 'composition')}. In AMF's diagram, the clearest "
        "edges lead from one previous-token head to keys of second-layer heads. The figure shows the model with the "
        f"lowest held-out loss for each number of layers and heads (at most {MOST_CELLS} models); the CSV has all "
        "models."
    )
    layers = max(c.summary.n_layers for c in shown)
    size = (12.6, 0.5 + len(shown) * (1.1 + 1.6 * (layers - 1)))
    return picture("composition", "Composition between heads", caption, data, size, paint)


def _shown(results: Results) -> list[Cell]:
    """Return the model with the lowest held-out loss for each number of layers and of heads, in ascending order, and at
    most MOST_CELLS models."""
    best: dict[tuple[int, int], Cell] = {}
    for cell in sorted(results.cells.values(), key=lambda c: c.summary.val_loss_nats):
        if cell.rows(CompositionRow):
            best.setdefault((cell.summary.n_layers, cell.summary.n_heads), cell)
    return [best[key] for key in sorted(best)][:MOST_CELLS]


def _graph(ax: Axes, cell: Cell, kind: str, strongest: float) -> None:
    edges = [e for e in cell.rows(CompositionRow) if e.kind == kind and (e.composes or e.varying > e.chance)]
    for e in sorted(edges, key=lambda e: (e.composes, e.varying - e.chance)):  # the strongest edge is drawn last
        bend = 0.18 * (e.late_layer - e.early_layer - 1)  # around the heads of the layers between
        ax.add_patch(
            FancyArrowPatch(
                (e.early_head, e.early_layer),
                (e.late_head, e.late_layer),
                arrowstyle="-",
                connectionstyle=f"arc3,rad={bend}",
                lw=max(WIDEST * (e.varying - e.chance) / strongest, 0.4),
                color=symbols.layer_colour(cell.summary.n_layers) if e.composes else symbols.FAINT,
                alpha=0.9 if e.composes else 0.4,
                shrinkA=NODE * 0.62,
                shrinkB=NODE * 0.62,
                zorder=2 if e.composes else 1,
            )
        )
    _heads(ax, cell)
    count, possible = (sum(e.composes for e in edges), sum(e.kind == kind for e in cell.rows(CompositionRow)))
    ax.set_title(f"{cell.summary.n_heads} heads, seed {cell.summary.seed}: {kind} ({count} of {possible} edges)")
    ax.set(xlim=(-0.6, cell.summary.n_heads - 0.4), ylim=(-0.4, cell.summary.n_layers - 0.6))
    ax.set_axis_off()


def _heads(ax: Axes, cell: Cell) -> None:
    previous, induction = cell.previous_token_head(), cell.formed_induction_head()
    for h in cell.rows(HeadRow):
        fill = "black" if h == previous else "#c4c4c4" if h == induction else "white"
        ax.scatter([h.head], [h.layer], s=NODE**2, color=fill, edgecolors="black", linewidths=1.1, zorder=3)
        ink, label, at = "white" if h == previous else "black", head_label(h.layer, h.head), (h.head, h.layer)
        ax.annotate(label, at, color=ink, fontsize=7.6, ha="center", va="center", zorder=4)


def _legend(strongest: float) -> list[Line2D]:
    def line(label: str, share: float, colour: str = "black") -> Line2D:
        return Line2D([], [], color=colour, lw=WIDEST * share, label=label)

    return [
        line(f"score − chance: {number(strongest)}", 1.0),
        line(number(strongest / 2), 0.5),
        line(number(strongest / 10, 3), 0.1),
        line("above chance, does not compose", 0.1, symbols.FAINT),
    ]
