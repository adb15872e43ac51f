"""Loss by position in the window."""

from __future__ import annotations

import itertools
import statistics

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import layers_label
from pathsum.probes.evaluation import Evaluation
from pathsum.records.results import Results
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, layer_palette, picture, row
from pathsum.report.figures.learning import levels

LEAST_BIN, WIDENING = 4, 1.12  # positions a bin: the least, and how much further each bin reaches than the last


def loss_by_position(results: Results) -> Figure | None:
    """Draw loss against position at the end of training, with the two bands that the in-context loss drop compares."""
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
        for low, high in ((0.08, 0.12), (0.9, 1.0)):
            ax.axvspan(low * n_ctx, high * n_ctx, color="#000000", alpha=0.07, lw=0)
        sns.lineplot(
            data, x="position", y="loss_nats", hue="layers", palette=layer_palette(results), errorbar=("pi", 100), ax=ax
        )
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        ax.set(xlabel=symbols.POSITION, ylabel=symbols.LOSS)
        ax.legend(title="")

    caption = (
        "A line that falls from the left grey band to the right one learns from its context. Lines are means over "
        f"models, and over positions in bins that widen to the right; the shade spans all models. {levels(results)}"
    )
    return picture("loss_by_position", "Where in the window the loss falls", caption, data, (7.4, 4.2), paint)


def _binned(evaluation: Evaluation) -> list[tuple[float, float]]:
    losses, edges = evaluation.loss_by_position_nats, [0]
    while edges[-1] < len(losses):
        edges.append(min(max(edges[-1] + LEAST_BIN, int(edges[-1] * WIDENING)), len(losses)))
    return [((low + high + 1) / 2, statistics.mean(losses[low:high])) for low, high in itertools.pairwise(edges)]
