"""Attention scores of induction heads by pairs of paths (docs/framework.md §2.3). The words are in score_paths.md."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pathsum.claims.content import POSITION, TERMS, term
from pathsum.claims.formatting import number, span
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures.base import Figure
from pathsum.report.figures.preferences import preferences
from pathsum.report.page.document import Section, plain
from pathsum.report.theme import Figures, Theme
from pathsum.report.told import Frames, labels, listed

TITLE = "Attention scores by pairs of paths"
MOST_CELLS = 4  # largest number of panels of the figure, one per model
KEYS, QUERY = "keys through the previous-token head", "strongest path to the query"  # columns of the table


def facts(t: Frames) -> dict[str, Any]:
    """Return what text, table and figure show of the best induction heads. Empty without scores by pairs of paths."""
    if t.score_paths.empty or (rows := with_terms(t)).empty:
        return {}
    cells, nats = rows["cell"], rows["preference_nats"]
    previous = dict(zip(t.previous["cell"], labels(t.previous), strict=True))
    rows["boxed"] = rows["key"] == cells.map(previous)
    strongest = rows[rows["query"] != POSITION].groupby(["cell", "query"], sort=False)["preference_nats"].sum()
    one_side = (rows["query"] == POSITION) != (rows["key"] == POSITION)
    return {
        "rows": rows,
        "drawn": rows[one_side.groupby(cells).transform("any") | (rows["query"] != POSITION)],  # no bias by distance
        "error": t.score_paths.loc[t.score_paths["cell"].isin(cells), "exactness"].max(),
        "standard_error": rows["preference_error_nats"].max(),
        "all": nats.groupby(cells, sort=False).sum(),
        "previous": previous,
        "through": nats.where(rows["boxed"], 0.0).groupby(cells, sort=False).sum(),
        "strongest": strongest.loc[strongest.groupby("cell", sort=False).idxmax().tolist()],
    }


def with_terms(t: Frames) -> pd.DataFrame:
    """Return the pairs of paths of each model's best induction head, with the column ``term``, one of TERMS."""
    return t.score_paths.assign(term=[term(row) for row in t.rows("score_paths")]).merge(t.induction)


def section(results: Results, figures: Figures) -> Section:
    """Show how much each kind of composition contributes to the scores of induction heads."""
    t = Frames(results.cells)
    if not (found := facts(t)):
        return told.absent(TITLE)
    parts = found["rows"].groupby(["cell", "term"])[["preference_nats", "variance_share"]].sum()
    terms = {at: f"{plain(nats)} ({plain(share)})" for at, nats, share in parts.itertuples(name=None)}
    here = t.distances[t.distances["distance"] == 0]
    own = dict(zip(zip(here["cell"], labels(here), strict=True), here["attention"], strict=True))
    through, strongest = found["through"], found["strongest"]
    shown = {
        "model": through.index,
        "head": labels(found["rows"].drop_duplicates("cell")),
        **{name: [terms.get((cell, name)) for cell in through.index] for name in TERMS},
        "all (nats)": found["all"].to_numpy(),
        KEYS: [f"{found['previous'][cell]}: {number(nats)} nats" for cell, nats in through.items()],
        QUERY: [
            f"{at[1]}: {number(nats)} nats" + (f", itself {number(own[at])}" if at in own else "")
            for at, nats in strongest.items()
        ],
    }
    caption = (
        "Preference of the best induction head by term (in parentheses the term's share of the variance of scores over "
        "keys), the part with keys through the previous-token head, and the path to the query with the largest sum "
        "over key paths. “Itself”: attention of this head to its own position on held-out text."
    )
    table = told.table(pd.DataFrame(shown), caption, kinds={KEYS: "text", QUERY: "text"}, csv="score_paths.csv")
    return told.section(TITLE, "score_paths", found, {**figures, "terms": table})


def score_paths(results: Results) -> Figure | None:
    """Draw the preference of the best induction heads of up to MOST_CELLS models, by path to the query and path to the
    key. None without such scores."""
    t = Frames(results.cells)
    if not (found := facts(t)):
        return None
    drawn = found["drawn"]
    positions = drawn[["query", "key"]].eq(POSITION).to_numpy().any()
    everything = drawn.groupby("cell")["preference_nats"].sum()
    caption = (
        "Parts of the best induction head's preference (nats; chance is 0) by path to the query (row) and to the key "
        "(column): top left the direct pair, the rest of the top row K-composition"
        f"{' (except position)' if positions else ''}. Box: keys that come through the previous-token head, "
        f"{span(listed(found['through']))} nats of {span(listed(everything))} nats in all squares (ranges over models)."
        f"{'' if positions else ' The bias by distance is left out.'}"
    )
    title, shown = "Scores of induction heads by pairs of paths", t.cells.loc[found["all"].index[:MOST_CELLS]]
    return preferences("score_paths", title, caption, drawn, shown, "path to the key", (3.4, 3.9))


THEME = Theme(TITLE, section, figures=(score_paths,), tables=("score_paths",))
