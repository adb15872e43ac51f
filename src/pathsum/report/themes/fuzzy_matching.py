"""Matches of similar but unequal tokens, and renamed copies (docs/framework.md §5.13); words in fuzzy_matching.md."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import span
from pathsum.records.fuzzy_matching import FuzzyKind, FuzzyMeasure
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, errors, picture, row, side_by_side
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, intervals, labels, listed

TITLE = "Matching similar tokens"
MEASURES = {  # as the text calls them
    "attention": FuzzyMeasure.ATTENTION_OVER,
    "nats": FuzzyMeasure.LIKELY_OVER,
    "score": FuzzyMeasure.SCORE_OVER,
    "kept": FuzzyMeasure.KEPT,
    "after": FuzzyMeasure.AFTER,
    "new": FuzzyMeasure.NEW,
}
KINDS = (
    *(kind for v in FuzzyKind.VARIANTS for kind in (FuzzyKind.equal(v), v, FuzzyKind.unrelated(v))),
    FuzzyKind.CHANCE,
)
COPIES = {
    FuzzyKind.EXACT: symbols.ACCENT,
    FuzzyKind.RENAMED: symbols.LAYER_COLOURS[2],
    FuzzyKind.SHUFFLED: symbols.LAYER_COLOURS[1],
    FuzzyKind.ANOTHER: symbols.FAINT,
}
SPREAD = 0.6  # share of the height between two groups over which the dots of one group are spread


def facts(t: Frames) -> dict[str, Any]:
    """Return the rows of each measure, by kind of token and of copy. Empty without fuzzy matching."""
    rows = t.fuzzy_matching
    if rows.empty:
        return {}

    def of(kind: str) -> dict[str, pd.DataFrame]:
        some = rows[rows["kind"] == kind]
        return {name: some[some["measure"] == measure] for name, measure in MEASURES.items()}

    families, documents = (span(listed(rows.loc[gain, "n"]), 0) for gain in (rows["head"].notna(), rows["head"].isna()))
    return {
        "rows": rows,
        "variants": [(v, of(v), of(FuzzyKind.equal(v))) for v in FuzzyKind.VARIANTS if len(of(v)["attention"])],
        "renamed": of(FuzzyKind.RENAMED),
        "exact": of(FuzzyKind.EXACT),
        "over_shuffled": of(FuzzyKind.OVER_SHUFFLED),
        "over_another": of(FuzzyKind.OVER_ANOTHER),
        "bars": f"95 % bootstrap intervals over {families} families of similar tokens or {documents} documents",
    }


def table(found: dict[str, Any]) -> Table:
    """Return the table of the section: a row for each model."""
    rows = found["rows"]
    tokens = [name for kind in FuzzyKind.VARIANTS for name in (FuzzyKind.equal(kind), kind)]
    columns = {
        **{f"{name}: attention": (name, FuzzyMeasure.ATTENTION_OVER) for name in tokens},
        **{f"{name}: match score": (name, FuzzyMeasure.SCORE_OVER) for name in tokens},
        **{f"{m} − control (nats per token)": (FuzzyKind.OVER_SHUFFLED, m) for m in FuzzyMeasure.GAINS},
    }
    texts = rows.assign(text=intervals(rows, "value")).pivot(index="cell", columns=["kind", "measure"], values="text")
    heads = rows[rows["head"].notna()].astype({"layer": int, "head": int}).drop_duplicates("cell").set_index("cell")
    shown = pd.DataFrame({"model": rows["cell"].unique()})
    shown["head"] = shown["model"].map(pd.Series(labels(heads), heads.index))
    for name, at in columns.items():
        shown[name] = shown["model"].map(texts.get(at, {}))
    caption = (
        "Attention (−1 to 1) to the follower, match score (standard deviations) and gain on the renamed copy, minus "
        f"the control's; {found['bars']}."
    )
    return told.table(shown, caption, csv="fuzzy_matching.csv")


def fuzzy_matching(results: Results) -> Figure | None:
    """Draw attention by kind of earlier token, and gains by kind of first copy: a dot per model."""
    if not (found := facts(Frames(results.cells))):
        return None
    rows = found["rows"][["cell", "kind", "measure", "value", "low", "high", "n"]]
    attention = rows[(rows["measure"] == FuzzyMeasure.ATTENTION) & rows["kind"].isin(KINDS)]
    gains = rows[rows["kind"].isin(COPIES)]

    def paint(canvas: Canvas) -> None:
        left, right = row(canvas, 2)
        _dots(left, attention, "kind", KINDS, symbols.ACCENT)
        left.set(xlabel=symbols.ATTENTION, title="by the token before the follower")
        for i, (copy, colour) in enumerate(COPIES.items()):
            some = gains[gains["kind"] == copy]
            _dots(right, some, "measure", FuzzyMeasure.GAINS, colour, copy, i, len(COPIES))
        right.axvline(0, color=symbols.FAINT, lw=1)
        right.set(xlabel="gain from the preceding passage (nats per token)", title="second copy, by target")
        right.legend(loc="upper left")

    caption = (
        "Left: attention of the induction head to the follower. Right: gain on an exact or renamed copy, and after the "
        f"passage in random order or another passage. Dots: models; bars: {found['bars']}."
    )
    data = pd.concat([attention, gains]).sort_index()
    return picture("fuzzy_matching", "Matches of similar tokens", caption, data, (11.0, 4.0), paint)


def _dots(
    ax: Axes, data: pd.DataFrame, by: str, order: Sequence[str], colour: str, label: str = "", i: int = 0, n: int = 1
) -> None:
    """Draw a dot with its interval for each row of ``data``, in the i-th of n parts of SPREAD around its group."""
    y = [place + SPREAD * ((i + 0.5) / n - 0.5) for place in side_by_side(data[by], order, SPREAD / n)]
    ax.errorbar(data["value"], y, xerr=errors(data), fmt="o", ms=4, color=colour, elinewidth=1, label=label)
    ax.set_yticks(range(len(order)), [name.removeprefix(FuzzyMeasure.GAIN) for name in order])
    ax.set_ylim(len(order) - 0.4, -0.6)


section = told.from_facts(TITLE, "fuzzy_matching", facts, table=table)
THEME = Theme(TITLE, section, figures=(fuzzy_matching,), tables=("fuzzy_matching",))
