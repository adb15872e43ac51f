"""Controls that must, or must not, show induction, with the grid."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import layers_label
from pathsum.records.results import Results
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, picture, row
from pathsum.report.figures.learning import best, curriculum_caption, shade_curricula

DASHES = ("--", ":", "-.")


def controls(results: Results) -> Figure | None:
    """Best prefix matching against tokens seen: the controls over the grid's one- and two-layer models."""
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
        for name in dict.fromkeys(data["cell"]):
            part = data[data["cell"] == name]
            n_layers = int(part["n_layers"].iloc[0])
            x, y, colour = part["tokens_millions"], part["prefix_matching"], symbols.layer_colour(n_layers)
            if name in dashes:
                label, dot = f"{name} ({layers_label(n_layers)})", "o" * (len(part) == 1)
                ax.plot(x, y, color=colour, ls=dashes[name], lw=2.4, marker=dot, label=label)
            else:
                ax.plot(x, y, color=colour, lw=0.9, alpha=0.35)
        shade_curricula(ax, results)
        ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=symbols.PREFIX_MATCHING)
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    caption = (
        "Controls that must form induction heads rise like two-layer models, the others stay near zero; the table "
        f"lists both kinds. Thin lines: the models of the grid.{curriculum_caption(results)}"
    )
    return picture("controls", "Controls", caption, data, (8.0, 3.8), paint)
