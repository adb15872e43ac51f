"""Whose content an induction head compares: the query's token against the key's, by how far back either comes from."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.claims.content import CURRENT, PREVIOUS, of_induction_head, share
from pathsum.claims.formatting import plural, span
from pathsum.claims.score_paths import POSITION
from pathsum.records.content import ContentScoreRow
from pathsum.records.results import Cell, Results
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, picture
from pathsum.report.figures.preferences import pairs, panels

MOST_MODELS = 4  # panels


def content_scores(results: Results) -> Figure | None:
    """Preference of each model's best induction head, content at the query by content at the key."""
    models = [c for c in (*results.cells.values(), *results.controls.values()) if of_induction_head(c)]
    if not models:
        return None
    data = pd.concat([pairs(c, _drawn(c)) for c in models], ignore_index=True)
    small = [c for c in models if c.name in results.controls and c.name.startswith("small_embedding")][:1]
    shown = [*[c for c in models if c.name in results.cells][: MOST_MODELS - len(small)], *small]

    def paint(canvas: Canvas) -> None:
        panels(canvas, shown, data, _mark)

    shares = [s for c in results.cells.values() if (s := share(of_induction_head(c), CURRENT, PREVIOUS)) is not None]
    caption = (
        "The best induction head's preference by content: rows are how many tokens back the content read at the query "
        "comes from, columns the same at the key, whatever heads carried it; BOS is the first position. Box: current "
        f"token against previous token, {span(shares)} of the preference in {plural(len(shares), 'model')}. Nats above "
        "the query's mean over keys, on repeated random tokens; chance is 0. Position's own terms are left out."
    )
    if len(models) > len(shown):
        caption += f" Drawn are {len(shown)} of {len(models)} models; the CSV has all."
    width = max(4.5, 3.2 * len(shown))
    return picture("content_scores", "What an induction head compares", caption, data, (width, 3.6), paint)


def _drawn(cell: Cell) -> list[ContentScoreRow]:
    return [r for r in of_induction_head(cell) if POSITION not in (r.query, r.key)]


def _mark(ax: Axes, cell: Cell, order: list[str]) -> None:
    at = order.index(PREVIOUS), order.index(CURRENT)
    ax.add_patch(Rectangle(at, 1, 1, fill=False, ec=symbols.ACCENT, lw=2, clip_on=False))
    ax.set(xlabel="content at the key (tokens back)", ylabel="content at the query (tokens back)")
