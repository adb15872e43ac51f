"""Heat maps of an induction head's preference, by path or content at the query (rows) and at the key (columns)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import head_label, number
from pathsum.figures.base import Figure, picture, row
from pathsum.records.content import ContentScoreRow
from pathsum.records.results import Cell
from pathsum.records.score_paths import ScorePathRow

MOST_WRITTEN = 9  # largest number of rows for which each entry is printed

Mark = Callable[[Axes, Cell, list[str]], None]  # adds boxes and labels to one panel, from the names of its rows


def preferences(
    name: str,
    title: str,
    caption: str,
    cells: Mapping[str, Sequence[ScorePathRow | ContentScoreRow]],
    shown: Sequence[Cell],
    mark: Mark,
    panel_inches: tuple[float, float],
) -> Figure:
    """Draw one heat map per model of ``shown``, side by side. ``cells`` holds the rows of every model by its name. All
    maps share one color scale, which covers the rows of all ``cells``."""
    rows = [(cell, r.query, r.key, r.preference_nats) for cell, some in cells.items() for r in some]
    data = pd.DataFrame(rows, columns=["cell", "query", "key", "preference_nats"])

    def paint(canvas: Canvas) -> None:
        axes, limit = row(canvas, len(shown)), float(data["preference_nats"].abs().max()) or 1.0
        for ax, cell in zip(axes, shown, strict=True):
            _squares(ax, cell, data[data["cell"] == cell.name], limit, mark)
        bar = canvas.colorbar(axes[0].collections[0], ax=axes, shrink=0.8, aspect=25)
        bar.set_label("part of the preference (nats)")

    if len(cells) > len(shown):
        caption += f" The figure shows {len(shown)} of {len(cells)} models; the CSV contains all."
    width = max(4.5, panel_inches[0] * len(shown))
    return picture(name, title, caption, data, (width, panel_inches[1]), paint)


def _squares(ax: Axes, cell: Cell, pairs: pd.DataFrame, limit: float, mark: Mark) -> None:
    order = list(dict.fromkeys(pairs["key"]))
    nats = pairs.pivot(index="query", columns="key", values="preference_nats").reindex(index=order, columns=order)
    sns.heatmap(
        nats,
        ax=ax,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        annot=nats.map(_written) if len(order) <= MOST_WRITTEN else None,
        fmt="",
        cbar=False,
        square=True,
        linewidths=0.5,
        linecolor="white",
        annot_kws={"fontsize": 7},
    )
    if (head := cell.induction_head()) is not None:
        name = f"{cell.summary.n_heads} heads, seed {cell.summary.seed}" if cell.name.startswith("L") else cell.name
        ax.set_title(f"{name}: {head_label(head.layer, head.head)}")
    mark(ax, cell, order)
    ax.tick_params(axis="y", rotation=0)
    ax.tick_params(length=0, labelsize=8)


def _written(nats: float) -> str:
    """Format ``nats`` with one decimal, or as 0 if it rounds to 0."""
    return number(nats, 1) if abs(nats) >= 0.05 else "0"
