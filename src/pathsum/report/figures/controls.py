"""What must and what must not show induction, beside the grid."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure as Canvas

from pathsum.report import symbols
from pathsum.report.figures.base import Figure, picture, row
from pathsum.report.figures.learning import best
from pathsum.results import Results

DASHES = ("--", ":", "-.")


def controls(results: Results) -> Figure | None:
    """Best prefix matching against tokens seen: the controls over the grid's one- and two-layer cells."""
    rows = [
        (c.name, c.summary.n_layers, e.tokens_seen / 1e6, matching)
        for c in (*results.cells.values(), *results.controls.values())
        for e in c.log
        if (matching := best(e.prefix_matching)) is not None
    ]
    data = pd.DataFrame(rows, columns=["cell", "n_layers", "tokens_millions", "prefix_matching"])
    if not any(name in results.controls for name in data["cell"]):
        return None

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        dashes = dict(zip(results.controls, DASHES * len(results.controls), strict=False))
        for (name, n_layers), part in data.groupby(["cell", "n_layers"], sort=False):
            x, y, colour = part["tokens_millions"], part["prefix_matching"], symbols.layer_colour(int(n_layers))
            if name in dashes:
                label = f"{name} ({symbols.layers_label(int(n_layers))})"
                ax.plot(x, y, color=colour, ls=dashes[name], lw=2.4, marker="o" * (len(part) == 1), label=label)
            else:
                ax.plot(x, y, color=colour, lw=0.9, alpha=0.35)
        ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=symbols.PREFIX_MATCHING)
        ax.legend(loc="best")

    caption = (
        "Only where keys can see their predecessor does one layer form induction heads; where the text has no order, "
        "or the weights are untrained, two layers do not. Thin: the cells of the grid."
    )
    return picture("controls", "Controls", caption, data, (7.4, 4.0), paint)

