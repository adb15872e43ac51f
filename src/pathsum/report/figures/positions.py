"""The figure of the loss by position in the window."""

from __future__ import annotations

import itertools
import statistics

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure as Canvas

from pathsum.behavior.in_context import LONG_CONTEXT, NEIGHBOURS
from pathsum.claims.formatting import layers_label
from pathsum.records.evaluation import Evaluation
from pathsum.records.results import Results
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, layer_palette, picture, row

LEAST_BIN, WIDENING = 4, 1.12  # least number of positions per bin; ratio of the ends of successive bins


def loss_by_position(results: Results) -> Figure | None:
    """Draw the loss by position, at the last evaluation of training."""
    rows = [
        {"layers": layers_label(c.summary.n_layers), "cell": c.name, "position": centre, "loss_nats": loss}
        for c in results.cells.values()
        if c.log
        for centre, loss in _binned(c.log[-1])
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    n_ctx = max(c.summary.n_ctx for c in results.cells.values())

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        for low, high in loss_drop_ends(n_ctx):
            ax.axvspan(low, high, color="#000000", alpha=0.07, lw=0)
        sns.lineplot(
            data, x="position", y="loss_nats", hue="layers", palette=layer_palette(results), errorbar=("pi", 100), ax=ax
        )
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        ax.set(xlabel=symbols.POSITION, ylabel=symbols.LOSS)
        ax.legend(title="")

    caption = (
        "Held-out loss by position at the last evaluation of training. The in-context loss drop is the mean loss in "
        "the left gray band minus the mean loss in the right gray band. Lines are means over models, and over "
        "positions in bins that widen to the right; colored areas are the range over models."
    )
    return picture("loss_by_position", "Loss by position in the window", caption, data, (7.4, 4.2), paint)


def loss_drop_ends(n_ctx: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the early and the late range of positions, each as (first, last), in windows of ``n_ctx`` predictions."""
    if n_ctx >= LONG_CONTEXT:
        return (50.0 - NEIGHBOURS, 50.0 + NEIGHBOURS), (500.0 - NEIGHBOURS, 500.0 + NEIGHBOURS)
    return (0.08 * n_ctx, 0.12 * n_ctx), (0.9 * n_ctx, 1.0 * n_ctx)


def _binned(evaluation: Evaluation) -> list[tuple[float, float]]:
    losses, edges = evaluation.loss_by_position_nats, [0]
    while edges[-1] < len(losses):
        edges.append(min(max(edges[-1] + LEAST_BIN, int(edges[-1] * WIDENING)), len(losses)))
    return [((low + high + 1) / 2, statistics.mean(losses[low:high])) for low, high in itertools.pairwise(edges)]
