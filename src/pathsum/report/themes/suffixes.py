"""Matches of more than one token (docs/framework.md §5.12)."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.content import CURRENT, FURTHER, PREVIOUS, TWO_BACK
from pathsum.claims.formatting import span
from pathsum.records.results import Results
from pathsum.records.suffixes import CONTROLS_OF, Condition, Cut
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, errors, picture, row, side_by_side
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, intervals, labels, listed

TITLE = "Matching more than one token"
CONTENT = {  # offsets of the content that is compared, at the query and at the key
    "current × previous": (CURRENT, PREVIOUS),
    "previous × two back": (PREVIOUS, TWO_BACK),
    "two back × three or more back": (TWO_BACK, FURTHER),
}
SHOWN = {
    Cut.NONE: "none",
    Cut.QUERY_EDGE: "previous\ntoken →\nqueries",
    Cut.KEY_EDGE: "two tokens\nback →\nkeys",
    Cut.BUT_ONE_TOKEN: "all but\ncurrent ×\nprevious",
    Cut.QUERY_OTHERS: "control:\nother →\nqueries",
    Cut.KEY_OTHERS: "control:\nother →\nkeys",
    Cut.QUERY_RANDOM: "random →\nqueries",
    Cut.KEY_RANDOM: "random →\nkeys",
}
EDGES = {  # as the text calls them
    Cut.QUERY_EDGE: "from previous-token heads to the queries",
    Cut.KEY_EDGE: "from heads that attend two tokens back to the keys",
    Cut.QUERY_OTHERS: "from as many other heads to the queries",
    Cut.KEY_OTHERS: "from as many other heads to the keys",
}
SPREAD = 0.5  # share of the width between two groups over which the dots of one group are spread


def facts(t: Frames) -> dict[str, Any]:
    uncut = t.suffix_cuts[t.suffix_cuts["cut"] == Cut.NONE].set_index("cell")
    if uncut.empty:
        return {}
    mine = t.suffix_matches.merge(uncut.reset_index()[["cell", "layer", "head"]]).set_index("cell")
    two, three = (mine[mine["condition"] == name] for name in (Condition.TWO_ONE, Condition.THREE_TWO))
    having = uncut.index[uncut["low"] > 0]
    cuts = t.suffix_cuts[t.suffix_cuts["cell"].isin(having)]
    edges = [(name, cuts[cuts["cut"] == cut]) for cut, name in EDGES.items()]
    scores = t.content_scores.merge(t.induction)
    parts = scores.pivot_table(index="cell", columns=["query", "key"], values="preference_nats", aggfunc="sum")
    return {
        "uncut": uncut,
        "two": two,
        "three": three,
        "chance": two["chance"].iloc[0],
        "having": len(having),
        "edges": [(name, rows["cell"].nunique(), rows) for name, rows in edges if len(rows)],
        "random": cuts[cuts["cut"].isin((Cut.QUERY_RANDOM, Cut.KEY_RANDOM))],
        "others": t.suffix_cuts[t.suffix_cuts["cut"] == Cut.BUT_ONE_TOKEN],
        "resampled": t.suffix_cuts[(t.suffix_cuts["method"] == "resample") & t.suffix_cuts["rotation"].isna()],
        "content": parts.div(parts.sum(axis=1).where(lambda whole: whole > 0), axis=0).reindex(uncut.index),
    }


def table(found: dict[str, Any]) -> Table:
    uncut, shares = found["uncut"], found["content"]
    by_cut = {cut: rows.set_index("cell").reindex(uncut.index) for cut, rows in found["resampled"].groupby("cut")}
    shown = {
        "model": uncut.index,
        "head": labels(uncut),
        "two tokens": found["two"]["longer"],
        "one token": found["two"]["shorter"],
        "difference": intervals(found["two"]),
        "three against two": intervals(found["three"]),
        "log-probability (nats)": intervals(uncut, "gain_nats"),
        **{f"without {cut}": intervals(by_cut[cut]) for cut in CONTROLS_OF if cut in by_cut},
        "second copy, one-token matching alone (nats)": intervals(by_cut[Cut.BUT_ONE_TOKEN], "second_copy_nats"),
        **{f"score: {name}": shares.get(at, pd.Series(index=uncut.index)).round(2) + 0 for name, at in CONTENT.items()},
    }
    caption = (
        "Attention of the best induction head to the follower of each match (0 to 1), with 95 % bootstrap intervals "
        f"over {span(listed(uncut['sequences']), 0)} sequences "
        f"(second copy: {span(listed(found['resampled']['windows']), 0)} windows). Without, alone: resample ablation. "
        "Score: share of the head's preference (at the query × at the key)."
    )
    return told.table(pd.DataFrame(shown), caption, csv="suffix_cuts.csv")


def suffixes(results: Results) -> Figure | None:
    """Draw the attention to the followers of both matches, and the advantage with edges ablated."""
    t = Frames(results.cells)
    if not (found := facts(t)):
        return None
    cut = t.suffix_cuts[t.suffix_cuts["method"].isin(("", "resample")) & t.suffix_cuts["cut"].isin(SHOWN)]
    least = cut.sort_values("advantage").drop_duplicates(["cell", "cut"]).sort_index()  # of several rotations
    clean = pd.concat([found["two"], found["three"]]).reset_index()
    columns = ["cell", "n_heads", "condition", "cut", "longer", "shorter", "advantage", "low", "high"]
    data = pd.concat([clean.assign(cut=""), least.assign(condition="")]).reindex(columns=columns)

    def paint(canvas: Canvas) -> None:
        left, middle, right = row(canvas, 3)
        _attention(left, found["two"], Condition.TWO_ONE)
        _attention(middle, found["three"], Condition.THREE_TWO)
        left.legend(loc="upper left")
        _advantage(right, least)

    caption = (
        "Attention to the followers of both matches, per model, and their difference (advantage) with edges into the "
        "head resampled (random: of four rotations, the one that leaves least). Bars: 95 % bootstrap intervals over "
        f"{span(listed(found['uncut']['sequences']), 0)} sequences."
    )
    return picture("suffixes", "Matches of one, two and three tokens", caption, data, (15.0, 4.0), paint)


def _attention(ax: Axes, data: pd.DataFrame, condition: Condition) -> None:
    order = sorted(set(data["n_heads"]))
    x = side_by_side(data["n_heads"], order, SPREAD)
    ax.vlines(x, data["shorter"], data["longer"], color=symbols.FAINT, lw=1)
    ax.plot(x, data["longer"], "o", color=symbols.ACCENT, label="after the longer match")
    ax.plot(x, data["shorter"], "o", color=symbols.ACCENT, mfc="white", label="after the shorter match")
    ax.set_xticks(range(len(order)), [str(n) for n in order])
    ax.set(xlabel="heads per layer", ylabel=symbols.ATTENTION, ylim=(0, 1), xlim=(-0.5, len(order) - 0.5))
    ax.set_title(f"{condition} (tokens matched)")


def _advantage(ax: Axes, data: pd.DataFrame) -> None:
    order = [cut for cut in SHOWN if cut in set(data["cut"])]
    x = side_by_side(data["cut"], order, SPREAD)
    ax.axhline(0, color=symbols.FAINT, lw=1)
    ax.errorbar(x, data["advantage"], yerr=errors(data, "advantage"), fmt="o", color=symbols.ACCENT, elinewidth=1)
    ax.set_xticks(range(len(order)), [SHOWN[cut] for cut in order], fontsize=7)
    ax.set(ylabel="advantage (attention, −1..1)", xlim=(-0.5, len(order) - 0.5))
    ax.set_title("two against one, edges ablated")


section = told.from_facts(TITLE, "suffixes", facts, suffix_cuts=table)
THEME = Theme(
    TITLE,
    section,
    figures=(suffixes,),
    sources={"suffixes": ("suffix_matches", "suffix_cuts")},
    tables=("suffix_matches", "suffix_predictions", "suffix_cuts"),
)
