"""Heat maps of an induction head's preference, by path or content at the query (rows) and at the key (columns)."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.claims.formatting import head_label, number
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, picture, row

MOST_WRITTEN = 9  # largest number of rows for which each entry is printed
LOOK = {"cmap": "RdBu_r", "cbar": False, "square": True, "linewidths": 0.5, "linecolor": "white"}


def preferences(
    name: str, title: str, caption: str, pairs: pd.DataFrame, shown: pd.DataFrame, axis: str, size: tuple[float, float]
) -> Figure:
    """Draw one heat map of ``size`` (inches) per model of ``shown`` (summaries by name)."""
    data = pairs[["cell", "query", "key", "preference_nats"]]
    limit = float(data["preference_nats"].abs().max()) or 1.0

    def squares(ax: Axes, model: str, mine: pd.DataFrame) -> None:
        order = list(dict.fromkeys(mine["key"]))
        nats = mine.pivot(index="query", columns="key", values="preference_nats").reindex(index=order, columns=order)
        written = nats.map(_written) if len(order) <= MOST_WRITTEN else None
        sns.heatmap(nats, ax=ax, vmin=-limit, vmax=limit, annot=written, fmt="", annot_kws={"fontsize": 7}, **LOOK)
        x, y = ([order.index(path) for path in mine.loc[mine["boxed"], side]] for side in ("key", "query"))
        if x:
            width, height = max(x) + 1 - min(x), max(y) + 1 - min(y)
            box = Rectangle((min(x), min(y)), width, height, fill=False, ec=symbols.ACCENT, lw=2, clip_on=False)
            ax.add_patch(box)
        ax.set(xlabel=axis, ylabel=axis.replace("key", "query"))
        ax.set_title(f"{model}: {head_label(*map(int, mine[['layer', 'head']].iloc[0]))}")
        ax.tick_params(axis="y", rotation=0)
        ax.tick_params(axis="x", rotation=90 * any(len(path) > 3 for path in order))
        ax.tick_params(length=0, labelsize=8)

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, len(shown))
        for ax, cell, heads, seed in zip(axes, shown.index, shown["n_heads"], shown["seed"], strict=True):
            model = f"{heads} heads, seed {seed}" if cell.startswith("L") else cell
            squares(ax, model, pairs[pairs["cell"] == cell])
        canvas.colorbar(axes[0].collections[0], ax=axes, shrink=0.8, aspect=25, label="part of the preference (nats)")

    if (models := pairs["cell"].nunique()) > len(shown):
        caption += f" The figure shows {len(shown)} of {models} models; the CSV contains all."
    return picture(name, title, caption, data, (max(4.5, size[0] * len(shown)), size[1]), paint)


def _written(nats: float) -> str:
    """Format ``nats`` with one decimal, or as 0 if it rounds to 0."""
    return number(nats, 1) if abs(nats) >= 0.05 else "0"
