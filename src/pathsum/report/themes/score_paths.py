"""Attention scores of induction heads by pairs of paths (docs/framework.md §2.3)."""

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.claims.content import POSITION, TERMS, term
from pathsum.claims.formatting import head_label, number, span
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, picture, row
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, labels, listed

TITLE = "Attention scores by pairs of paths"
MOST_CELLS = 4  # largest number of panels of the figure, one per model
MOST_WRITTEN = 9  # largest number of rows for which each entry is printed
LOOK = {"cmap": "RdBu_r", "cbar": False, "square": True, "linewidths": 0.5, "linecolor": "white"}
KEYS, QUERY = "keys through the previous-token head", "strongest path to the query"  # columns of the table


def facts(t: Frames) -> dict[str, Any]:
    if t.score_paths.empty or (rows := with_terms(t)).empty:
        return {}
    cells, nats, here = rows["cell"], rows["preference_nats"], t.distances[t.distances["distance"] == 0]
    previous = dict(zip(t.previous["cell"], labels(t.previous), strict=True))
    rows["boxed"] = rows["key"] == cells.map(previous)
    strongest = rows[rows["query"] != POSITION].groupby(["cell", "query"], sort=False)["preference_nats"].sum()
    one_side = (rows["query"] == POSITION) != (rows["key"] == POSITION)
    return {
        "rows": rows,
        "drawn": rows[one_side.groupby(cells).transform("any") | (rows["query"] != POSITION)],  # no bias by distance
        "error": t.score_paths.loc[t.score_paths["cell"].isin(cells), "exactness"].max(),
        "standard_error": rows["preference_error_nats"].max(),
        "previous": previous,
        "through": nats.where(rows["boxed"], 0.0).groupby(cells, sort=False).sum(),
        "strongest": strongest.loc[strongest.groupby("cell", sort=False).idxmax().tolist()],
        "own": dict(zip(zip(here["cell"], labels(here), strict=True), here["attention"], strict=True)),
    }


def with_terms(t: Frames) -> pd.DataFrame:
    """Return the pairs of paths of each model's best induction head, with the column ``term``, one of TERMS."""
    return t.score_paths.assign(term=[term(row) for row in t.rows("score_paths")]).merge(t.induction)


def table(found: dict[str, Any]) -> Table:
    rows, own = found["rows"], found["own"]
    parts = rows.groupby(["cell", "term"])[["preference_nats", "variance_share"]].sum()
    parts = parts.map(lambda x: number(round(x, 2) + 0.0))  # 0.004 is 0.00
    terms = (parts["preference_nats"] + " (" + parts["variance_share"] + ")").unstack()
    terms = terms.reindex(index=found["through"].index, columns=TERMS)
    shown = {
        "model": terms.index,
        "head": labels(rows.drop_duplicates("cell")),
        **{name: terms[name].to_numpy() for name in TERMS},
        "all (nats)": rows.groupby("cell", sort=False)["preference_nats"].sum().to_numpy(),
        KEYS: [f"{found['previous'][cell]}: {number(nats)} nats" for cell, nats in found["through"].items()],
        QUERY: [
            f"{at[1]}: {number(nats)} nats" + (f", itself {number(own[at])}" if at in own else "")
            for at, nats in found["strongest"].items()
        ],
    }
    caption = (
        "Preference of the best induction head by term (in parentheses: share of the variance of scores over keys), "
        "and by path (itself: attention of this head to its own position on held-out text)."
    )
    return told.table(pd.DataFrame(shown), caption, texts=[KEYS, QUERY], csv="score_paths.csv")


def score_paths(results: Results) -> Figure | None:
    """Draw the preference of the best induction heads by path to the query and path to the key."""
    t = Frames(results.cells)
    if not (found := facts(t)):
        return None
    drawn = found["drawn"]
    caption = (
        "Parts of the best induction head's preference (nats; chance is 0). Top row but its first square: "
        f"K-composition. Box: keys through the previous-token head, {span(listed(found['through']))} nats of "
        f"{span(listed(drawn.groupby('cell')['preference_nats'].sum()))} nats in all squares (ranges over models)."
    )
    title, shown = "Scores of induction heads by pairs of paths", t.cells.loc[found["through"].index[:MOST_CELLS]]
    return preferences("score_paths", title, caption, drawn, shown, "path to the key", (3.4, 3.9))


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


section = told.from_facts(TITLE, "score_paths", facts, terms=table)
THEME = Theme(TITLE, section, figures=(score_paths,), tables=("score_paths",))
