"""Figure of the losses on single tokens during training."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.records.formation import TokenLossRow
from pathsum.records.results import Cell, Results
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, legend_of_depths, picture, row
from pathsum.statistics.trajectories import principal_components

COMPONENTS = 2


def trajectories(results: Results) -> Figure | None:
    """Draw the training of each model as a line in the plane of the first two principal components of the losses on
    single tokens (docs/framework.md §6.6). None if there are too few checkpoints or tokens."""
    data, explained = _plane(results)
    if data.empty:
        return None

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        for name, path in data.groupby("cell", sort=False):
            _path(ax, path, results.cells[str(name)])
        ax.set(xlabel="principal component 1 (nats per token)", ylabel="principal component 2 (nats per token)")
        legend_of_depths(ax, sorted(set(data["n_layers"])), marker=".")

    shares = " and ".join(f"{share:.0%}".replace("%", " %") for share in explained)
    caption = (
        "Losses on the same held-out tokens at each checkpoint from 5 % of training on (earlier if the loss is below "
        "that of the bigram model), of all models, projected onto their first two principal components "
        f"({shares} of the variance). Each line is the training of one model. The circle marks the first of these "
        "checkpoints, and the large black dot the first after the onset of induction. Where lines of different depth "
        "separate, the models begin to differ in the tokens that they predict well. A bend of a line alone is no "
        "evidence of a transition, because principal components of smooth curves bend too."
    )
    return picture("trajectories", "Losses on single tokens during training", caption, data, (7.4, 5.0), paint)


def _plane(results: Results) -> tuple[pd.DataFrame, list[float]]:
    """Return the coordinates of each checkpoint, and the share of variance of each component."""
    sizes = Counter(len(r.losses_nats) for c in results.cells.values() for r in c.rows(TokenLossRow))
    size = max(sizes, key=lambda n: sizes[n], default=0)
    rows = [
        (c.name, c.summary.n_layers, r)
        for c in results.cells.values()
        for r in c.rows(TokenLossRow)
        if len(r.losses_nats) == size
    ]
    if len(rows) <= COMPONENTS or size < COMPONENTS:
        return pd.DataFrame(), []
    found = principal_components(torch.tensor([r.losses_nats for *_, r in rows]), COMPONENTS)
    points = [(name, n, r.tokens_seen, *at) for (name, n, r), at in zip(rows, found.coordinates.tolist(), strict=True)]
    columns = ["cell", "n_layers", "tokens_seen", "component_1", "component_2"]
    return pd.DataFrame(points, columns=columns), found.explained.tolist()


def _path(ax: Axes, path: pd.DataFrame, cell: Cell) -> None:
    x, y, colour = path["component_1"], path["component_2"], symbols.layer_colour(cell.summary.n_layers)
    ax.plot(x, y, color=colour, lw=1.2, alpha=0.6, marker=".")
    ax.plot(x[:1], y[:1], color=colour, marker="o", ms=9, mfc="none")
    after = path["tokens_seen"] >= (cell.summary.onset_tokens or float("inf"))
    if after.any():
        ax.plot(x[after].iloc[:1], y[after].iloc[:1], color=symbols.ACCENT, marker="o", zorder=3)
