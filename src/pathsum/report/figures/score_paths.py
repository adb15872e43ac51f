"""Which pairs of paths make an induction head look where it looks."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.records import ScorePathRow
from pathsum.report import symbols
from pathsum.report.claims.score_paths import POSITION, of_induction_head, through_keys, total
from pathsum.report.figures.base import Figure, picture, row
from pathsum.results import Cell, Results

MOST_CELLS, MOST_WRITTEN = 4, 9  # panels; paths up to which each number is written


def score_paths(results: Results) -> Figure | None:
    """Preference of each model's best induction head, path to the query by path to the key."""
    cells = [c for c in results.cells.values() if of_induction_head(c)]
    if not cells:
        return None
    shown, data = cells[:MOST_CELLS], pd.concat([_pairs(c) for c in cells], ignore_index=True)
    limit = float(data["preference_nats"].abs().max()) or 1.0

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, len(shown))
        for ax, cell in zip(axes, shown, strict=True):
            _heat(ax, cell, data[data["cell"] == cell.name], limit)
        canvas.colorbar(axes[0].collections[0], ax=axes, shrink=0.8, aspect=25).set_label("preference (nats)")

    keys, everything = [through_keys(c) for c in cells], [total(_drawn(c)) for c in cells]
    caption = (
        "Nats by which the best induction head's score of the token after the earlier occurrence exceeds its mean over "
        "keys, on repeated random tokens; chance is 0. Each square is one path to the query and one to the key. In the "
        "top row the query reads the embedding: its first square is direct, the others are K-composition. Box: keys "
        "that come through the "
        f"strongest previous-token head, {symbols.span(keys)} nats where all squares have {symbols.span(everything)}. "
        "A bias by distance is left out."
    )
    if len(cells) > len(shown):
        caption += f" Drawn are the first {len(shown)} of {len(cells)} models; the table has all."
    width = max(4.5, 3.4 * len(shown))
    return picture("score_paths", "What an induction head's scores are made of", caption, data, (width, 3.9), paint)


def _pairs(cell: Cell) -> pd.DataFrame:
    rows = _drawn(cell)
    columns = {name: [getattr(r, name) for r in rows] for name in ("query", "key", "preference_nats")}
    return pd.DataFrame({"cell": cell.name, **columns})


def _drawn(cell: Cell) -> list[ScorePathRow]:
    """All but a bias by distance, which is no path on either side: it stands with nothing but itself."""
    rows = of_induction_head(cell)
    is_path = any((r.query == POSITION) != (r.key == POSITION) for r in rows)
    return [r for r in rows if is_path or not r.query == r.key == POSITION]


def _written(nats: float) -> str:
    """One digit, and a plain 0 for what would print as zeros."""
    return symbols.number(nats, 1) if abs(nats) >= 0.05 else "0"


def _heat(ax: Axes, cell: Cell, pairs: pd.DataFrame, limit: float) -> None:
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
    previous, induction = cell.previous_token_head(), cell.induction_head()
    if previous is not None and (name := symbols.head_label(previous.layer, previous.head)) in order:
        box = Rectangle((order.index(name), 0), 1, len(order), fill=False, ec=symbols.ACCENT, lw=2, clip_on=False)
        ax.add_patch(box)
    if induction is not None:
        ax.set_title(f"{cell.name}: {symbols.head_label(induction.layer, induction.head)}")
    ax.set(xlabel="path to the key", ylabel="path to the query")
    ax.tick_params(axis="x", rotation=90)
    ax.tick_params(axis="y", rotation=0)
    ax.tick_params(length=0, labelsize=8)
