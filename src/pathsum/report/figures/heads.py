"""Figures of single heads: attention by distance."""

from __future__ import annotations

import dataclasses

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import layers_label, span
from pathsum.records.heads import DistanceRow
from pathsum.records.results import Results
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, picture, row

LONGEST_DISTANCE = 16


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


def _distances(ax: Axes, results: Results, data: pd.DataFrame) -> None:
    for (name, layer, head), part in data.groupby(["cell", "layer", "head"], sort=False):
        cell = results.cells[str(name)]
        best = cell.previous_token_head()
        bold = best is not None and (layer, head) == (best.layer, best.head)
        colour = symbols.layer_colour(cell.summary.n_layers)
        width, alpha = (2.4, 0.95) if bold else (0.9, 0.35)
        ax.plot(part["distance"], part["attention"], color=colour, lw=width, alpha=alpha)
    ax.set(xlabel=symbols.DISTANCE, ylabel=symbols.ATTENTION, ylim=(0, 1.02), xlim=(0, LONGEST_DISTANCE))
