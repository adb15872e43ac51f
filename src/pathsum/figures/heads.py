"""Figures of single heads: copying by weights, and attention by distance."""

from __future__ import annotations

import dataclasses

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import head_label, layers_label, number, span
from pathsum.figures import symbols
from pathsum.figures.base import Figure, axes_through_zero, picture, row
from pathsum.records.heads import COPYING, DistanceRow, EigenvalueRow, HeadRow
from pathsum.records.results import Cell, Results

LONGEST_DISTANCE = 16


def eigenvalues(results: Results) -> Figure | None:
    """Draw the OV eigenvalue positivity of every head, and the OV eigenvalues of the head with the highest positivity
    for each number of layers (docs/framework.md §3.5). None without heads."""
    rows = [
        {
            "cell": c.name,
            "layers": c.summary.n_layers,
            "group": f"{layers_label(c.summary.n_layers)}: L{h.layer}",
            "head": head_label(h.layer, h.head),
            "positivity": h.copying_positivity,
        }
        for c in results.cells.values()
        for h in c.rows(HeadRow)
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows).sort_values(["layers", "group", "cell", "head"], kind="stable", ignore_index=True)
    shown = [pair for n in results.layer_counts() if (pair := _most_copying(results.with_layers(n))) is not None]

    def paint(canvas: Canvas) -> None:
        first, *planes = row(canvas, 1 + len(shown))
        _positivity(first, data)
        for ax, (cell, head) in zip(planes, shown, strict=True):
            _plane(ax, cell, head)

    share = [
        f"{sum(p > COPYING for p in part)} of {len(part)} in models with {layers_label(n)}"
        for n in results.layer_counts()
        if len(part := data.loc[data["layers"] == n, "positivity"])
    ]
    caption = (
        f"Left: eigenvalue positivity of the OV circuit of each head. Heads above {COPYING} (dashed, our threshold) "
        f"copy by AMF's statistic: {'; '.join(share)}. In AMF, 10 of 12 heads of a one-layer model do. The next table "
        "counts the heads that copy by behavior on text and by intervention. Right: OV eigenvalues, in the complex "
        "plane and relative to the largest, of the head with the highest positivity for each number of layers."
    )
    size = (4.4 * (1 + len(shown)), 4.0)
    return picture("eigenvalues", "Copying heads by their OV eigenvalues", caption, data, size, paint)


def attention_by_distance(results: Results) -> Figure | None:
    """Draw the mean attention of every head by distance, up to LONGEST_DISTANCE tokens, with the previous-token head of
    each model in bold. None without heads."""
    rows = [
        {"cell": c.name, "group": f"{layers_label(c.summary.n_layers)}: layer L{r.layer}", **dataclasses.asdict(r)}
        for c in results.cells.values()
        for r in c.rows(DistanceRow)
        if r.distance <= LONGEST_DISTANCE
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    groups = sorted(set(data["group"]), key=lambda g: (int(g.split()[0]), g))

    def paint(canvas: Canvas) -> None:
        for ax, group in zip(row(canvas, len(groups), sharey=True), groups, strict=True):
            _distances(ax, results, data[data["group"] == group])
            ax.set_title(group)

    spans = "; ".join(
        f"{span(scores)} with {layers_label(n)}"
        for n in results.layer_counts()
        if (scores := [h.previous_token for c in results.with_layers(n) if (h := c.previous_token_head()) is not None])
    )
    caption = (
        "Mean attention of each head to the key at each distance, on held-out text. A peak at distance 1 marks a "
        "previous-token head. Bold: in each model, the first-layer head that attends most to the previous token. Over "
        f"models, this head's mean attention to the previous token is {spans}."
    )
    return picture("attention_by_distance", "Attention by distance", caption, data, (4.4 * len(groups), 3.8), paint)


def _most_copying(cells: list[Cell]) -> tuple[Cell, HeadRow] | None:
    pairs = [(c, h) for c in cells for h in c.rows(HeadRow) if c.rows(EigenvalueRow)]
    return max(pairs, key=lambda pair: pair[1].copying_positivity, default=None)


def _positivity(ax: Axes, data: pd.DataFrame) -> None:
    groups = list(dict.fromkeys(data["group"]))
    colours = {g: symbols.layer_colour(int(g.split()[0])) for g in groups}
    sns.stripplot(
        data, x="positivity", y="group", hue="group", palette=colours, jitter=False, alpha=0.45, size=8, ax=ax
    )
    ax.axvline(COPYING, color=symbols.FAINT, ls="--", lw=1.2, zorder=0)
    ax.set(xlim=(-1.05, 1.05), ylabel="", xlabel=f"OV eigenvalue positivity {symbols.POSITIVITY} (−1..1)")
    ax.set_title("all heads")


def _plane(ax: Axes, cell: Cell, head: HeadRow) -> None:
    table = pd.DataFrame(
        [(e.real, e.imag) for e in cell.rows(EigenvalueRow) if (e.layer, e.head) == (head.layer, head.head)],
        columns=["real", "imag"],
    )
    scale = max(float((table["real"] ** 2 + table["imag"] ** 2).max() ** 0.5), 1e-30) if len(table) else 1.0
    axes_through_zero(ax)
    colour = symbols.layer_colour(cell.summary.n_layers)
    sns.scatterplot(x=table["real"] / scale, y=table["imag"] / scale, color=colour, s=45, alpha=0.75, ax=ax)
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xlabel="Re λ / max |λ|", ylabel="Im λ / max |λ|")
    ax.set_box_aspect(1)
    label = head_label(head.layer, head.head)
    ax.set_title(f"{cell.name}, head {label}:\npositivity {number(head.copying_positivity)}")


def _distances(ax: Axes, results: Results, data: pd.DataFrame) -> None:
    for (name, layer, head), part in data.groupby(["cell", "layer", "head"], sort=False):
        cell = results.cells[str(name)]
        best = cell.previous_token_head()
        bold = best is not None and (layer, head) == (best.layer, best.head)
        colour = symbols.layer_colour(cell.summary.n_layers)
        width, alpha = (2.4, 0.95) if bold else (0.9, 0.35)
        ax.plot(part["distance"], part["attention"], color=colour, lw=width, alpha=alpha)
    ax.set(xlabel=symbols.DISTANCE, ylabel=symbols.ATTENTION, ylim=(0, 1.02), xlim=(0, LONGEST_DISTANCE))
