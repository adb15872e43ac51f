"""The figure of overlap between writes and reads in the residual stream, and of deletion."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import head_label
from pathsum.figures import symbols
from pathsum.figures.base import Figure, axes_through_zero, picture, row
from pathsum.records.results import Cell, Results
from pathsum.records.subspaces import DeletingRow, OverlapRow

KINDS = ("Q", "K", "V")


def subspaces(results: Results) -> Figure | None:
    """Draw the overlap of each early head's write with the subspace that each late head reads (docs/framework.md
    §3.15), and deletion by late heads (§3.16). None without pairs of heads."""
    rows = [
        {
            "cell": c.name,
            "n_layers": c.summary.n_layers,
            "kind": o.kind,
            "early": head_label(o.early_layer, o.early_head),
            "late": head_label(o.late_layer, o.late_head),
            "times_chance": o.share / o.chance,
            "spread": o.spread / o.chance,
            "induction": induction_edge(c, o),
        }
        for c in results.cells.values()
        for o in c.rows(OverlapRow)
        if o.chance > 0
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    deleting = pd.DataFrame(
        [
            (c.summary.n_layers, d.alignment, d.removed, d.spread)
            for c in results.cells.values()
            for d in c.rows(DeletingRow)
            if d.spread > 0
        ],
        columns=["n_layers", "alignment", "removed", "spread"],
    )

    def paint(canvas: Canvas) -> None:
        left, right = row(canvas, 2)
        _overlaps(left, data)
        _deleting(right, deleting)

    caption = (
        f"Left: overlap of {len(data) // 3} pairs of heads, for the queries, keys and values of the later head. Dashed "
        "line and band: mean ± 2 standard deviations (median over pairs) under random rotations between the two heads. "
        "Above the band, the later head reads more of the earlier head's write than by chance; below the band, less. "
        "Large dots: the previous-token head and the induction head of each model. Right: a head that deleted all "
        "writes of earlier layers would lie far to the upper left, at (−1, 1); band: ± 2 standard deviations of the "
        "alignment (median over heads) under random rotations."
    )
    return picture("subspaces", "Overlap of reads and writes, and deletion", caption, data, (10.4, 4.2), paint)


def induction_edge(cell: Cell, edge: OverlapRow) -> bool:
    """Return whether ``edge`` leads from the previous-token head to a formed induction head."""
    previous, induction = cell.previous_token_head(), cell.formed_induction_head()
    if previous is None or induction is None:
        return False
    ends = (edge.early_layer, edge.early_head, edge.late_layer, edge.late_head)
    return ends == (previous.layer, previous.head, induction.layer, induction.head)


def _overlaps(ax: Axes, data: pd.DataFrame) -> None:
    band = 2 * float(data["spread"].median())
    ax.axhspan(1 - band, 1 + band, color=symbols.FAINT, alpha=0.25, lw=0)
    ax.axhline(1, color=symbols.FAINT, ls="--", lw=1.2)
    for at, kind in enumerate(KINDS):
        part = data[data["kind"] == kind].reset_index(drop=True)
        x = at + 0.7 * ((part.index + 0.5) / max(len(part), 1) - 0.5)  # spread sideways, in order of models and heads
        colours = part["n_layers"].map(symbols.layer_colour).where(~part["induction"], symbols.ACCENT)
        sizes = part["induction"].map({True: 70, False: 18})
        ax.scatter(x, part["times_chance"], c=colours, s=sizes, alpha=0.7, linewidths=0)
    ax.set_xticks(range(len(KINDS)), ["queries (Q)", "keys (K)", "values (V)"])
    ax.set(ylabel="overlap of an earlier head's write with\na later head's read (multiples of chance)", ylim=(0, None))
    ax.set(xlabel="reader of the later head")
    ax.set_title("all pairs of heads")


def _deleting(ax: Axes, data: pd.DataFrame) -> None:
    if len(data):
        band = 2 * float(data["spread"].median())
        ax.axvspan(-band, band, color=symbols.FAINT, alpha=0.25, lw=0)
        palette = {n: symbols.layer_colour(int(n)) for n in set(data["n_layers"])}
        sns.scatterplot(data, x="alignment", y="removed", hue="n_layers", palette=palette, s=45, alpha=0.75, ax=ax)
        if (legend := ax.get_legend()) is not None:
            legend.remove()
    axes_through_zero(ax)
    reach = max(0.3, 1.1 * float(data[["alignment", "removed"]].abs().max().max())) if len(data) else 1.0
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    ax.set(xlabel="alignment with earlier writes (−1..1)", ylabel="share of earlier writes removed (1: all)")
    ax.set_title(f"{len(data)} heads after the first layer")
