"""Which pairs of paths the scores of an induction head come from."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.claims.formatting import head_label, span
from pathsum.claims.score_paths import POSITION, of_induction_head, through_keys, total
from pathsum.records.results import Cell, Results
from pathsum.records.score_paths import ScorePathRow
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, picture
from pathsum.report.figures.preferences import pairs, panels

MOST_CELLS = 4  # panels


def score_paths(results: Results) -> Figure | None:
    """Preference of each model's best induction head, path to the query by path to the key."""
    cells = [c for c in results.cells.values() if of_induction_head(c)]
    if not cells:
        return None
    shown, data = cells[:MOST_CELLS], pd.concat([pairs(c, _drawn(c)) for c in cells], ignore_index=True)

    def paint(canvas: Canvas) -> None:
        panels(canvas, shown, data, _mark)

    keys, everything = [through_keys(c) for c in cells], [total(_drawn(c)) for c in cells]
    caption = (
        "Nats by which the best induction head's score of the token after the earlier occurrence exceeds its mean over "
        "keys, on repeated random tokens; chance is 0. Each square is one path to the query and one to the key. In the "
        "top row the query reads the embedding: its first square is direct, the others are K-composition. Box: keys "
        f"that come through the strongest previous-token head, {span(keys)} nats where all squares have "
        f"{span(everything)}. A bias by distance is left out."
    )
    if len(cells) > len(shown):
        caption += f" Drawn are the first {len(shown)} of {len(cells)} models; the table has all."
    width = max(4.5, 3.4 * len(shown))
    return picture("score_paths", "What an induction head's scores are made of", caption, data, (width, 3.9), paint)


def _drawn(cell: Cell) -> list[ScorePathRow]:
    """All but a bias by distance, which is no path on either side: it stands with nothing but itself."""
    rows = of_induction_head(cell)
    is_path = any((r.query == POSITION) != (r.key == POSITION) for r in rows)
    return [r for r in rows if is_path or not r.query == r.key == POSITION]


def _mark(ax: Axes, cell: Cell, order: list[str]) -> None:
    previous = cell.previous_token_head()
    if previous is not None and (name := head_label(previous.layer, previous.head)) in order:
        box = Rectangle((order.index(name), 0), 1, len(order), fill=False, ec=symbols.ACCENT, lw=2, clip_on=False)
        ax.add_patch(box)
    ax.set(xlabel="path to the key", ylabel="path to the query")
    ax.tick_params(axis="x", rotation=90)
