"""The section on matches of more than one token (docs/framework.md §5.12)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims import content
from pathsum.claims.formatting import interval, number, plural, span
from pathsum.claims.suffixes import ablated, of_induction_head, uncut
from pathsum.figures import symbols
from pathsum.figures.base import Figure, errors, picture, row, side_by_side
from pathsum.page.document import HEAD, MODEL, Column, Section, Table, plain
from pathsum.records.results import Cell, Results
from pathsum.records.suffixes import CONTROLS_OF, Condition, Cut, SuffixCutRow
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Matching more than one token"
CONTENT = {  # offsets of the content that is compared, at the query and at the key
    "current × previous": (content.CURRENT, content.PREVIOUS),
    "previous × two back": (content.PREVIOUS, content.TWO_BACK),
    "two back × three or more back": (content.TWO_BACK, content.FURTHER),
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
COLUMNS = ["cell", "n_heads", "condition", "cut", "longer", "shorter", "advantage", "low", "high"]
SPREAD = 0.5  # share of the width between two groups over which the dots of one group are spread


def section(results: Results, figures: Figures) -> Section:
    """Show whether induction heads prefer longer matches, through which edges, and how this affects the loss."""
    cells = [c for c in results.cells.values() if uncut(c) is not None]
    if not cells:
        return Section(TITLE, ("This sweep has no two-layer model.",))
    method = (
        "In AMF's mechanism, an induction head matches the current token alone: all earlier occurrences of this token "
        "score alike. Here two earlier matches compete in one sequence of random tokens that are otherwise all "
        "different. Both matches end with the current token; the longer one also matches the previous token. The "
        "follower of a match is the token directly after it. Each sequence is used with the two matches in both "
        "orders, so that neither their distance nor the follower favors one of them. The head is the one after the "
        "first layer with the best prefix matching at training's last evaluation; these sequences were not used to "
        "choose it."
    )
    text = (method, _behaviour(cells), *_edges(cells), _heads(cells))
    return Section.of(TITLE, text, (*drawn(figures, "suffixes"), _table(cells)))


# ---- text -----------------------------------------------------------------------------------------------------------


def _behaviour(cells: Sequence[Cell]) -> str:
    rows = [r for c in cells if (r := of_induction_head(c, Condition.TWO_ONE)) is not None]
    prefer = [r for r in rows if r.low > 0]
    text = (
        f"The induction head prefers the longer match in {len(prefer)} of {plural(len(rows), 'model')} (95 % interval "
        f"of the difference of attention above 0). It gives {span([r.longer for r in rows])} of its attention to the "
        f"follower of the match of two tokens and {span([r.shorter for r in rows])} to the follower of the match of "
        f"one token (ranges over models); uniform attention gives {number(rows[0].chance, 3)}."
    )
    if not prefer:
        text += " No head is shown to match more than the current token."
    third = [r for c in cells if (r := of_induction_head(c, Condition.THREE_TWO)) is not None]
    gains = [clean.gain_nats for c in cells if (clean := uncut(c)) is not None]
    return (
        f"{text} The model's log-probability of the follower of the longer match is {span(gains)} nats above that of "
        "the other follower. With three tokens against two, the head prefers the longer match in "
        f"{sum(r.low > 0 for r in third)} of {plural(len(third), 'model')}; the difference of attention is "
        f"{span([r.advantage for r in third])} (range over all models)."
    )


def _edges(cells: Sequence[Cell]) -> tuple[str, ...]:
    """State what remains of the advantage under each cut of ``EDGES`` and with random directions, over the models that
    have an advantage, and the rise of the second copy's loss under ``Cut.BUT_ONE_TOKEN``. Empty without such models."""
    having = [c for c in cells if (r := uncut(c)) is not None and r.low > 0]
    text = [t for cut in EDGES if (t := _left(having, cut))]
    if not text:
        return ()
    second_copy = [r.second_copy_nats for c in cells for r in ablated(c, Cut.BUT_ONE_TOKEN)]
    cuts = (Cut.QUERY_RANDOM, Cut.KEY_RANDOM)
    random = [r.left for c in having for cut in cuts for r in ablated(c, cut) if r.left is not None]
    return (
        "In the models that prefer the match of two tokens, edges into the induction head are ablated (mean and "
        "resample ablation): those from previous-token heads to its queries, and those from heads that attend two "
        "tokens back to its keys (of each kind, the best first-layer head and others with a high score). Controls are "
        "as many edges to the same side from heads that are none of these, if there are as many. On other sequences, "
        "these edges cost most of the advantage. The advantage is the attention to the follower of the match of two "
        "tokens minus that to the follower of the match of one. Three numbers follow for each set of edges, as ranges "
        "over models and methods: the share of the advantage that remains, the share that remains of the attention to "
        "the follower of a match of one token (in sequences without another match), and the rise of the loss on the "
        f"second copy of repeated random tokens. {' '.join(text)} If the same changes of previous-token heads and of "
        f"heads that attend two tokens back are made in random directions (four rotations), {span(random)} of the "
        "advantage remain.",
        "In one-token matching, the queries of the induction head read no earlier head, and its keys read only "
        "previous-token heads. Ablation of all other edges into its queries and keys, including those of two-token "
        f"matching, raises the loss on the second copy by {span(second_copy)} nats per token (range over all models, "
        "mean and resample ablation).",
    )


def _left(cells: Sequence[Cell], cut: Cut) -> str:
    rows = [r for c in cells for r in ablated(c, cut)]
    if not rows:
        return ""
    left = [r.left for r in rows if r.left is not None]
    kept = [r.alone_left for r in rows if r.alone_left is not None]
    models = sum(bool(ablated(c, cut)) for c in cells)
    having = "" if models == len(cells) else f"{plural(models, 'model')} with such heads"
    notes = "; ".join(note for note in ("" if cut in CONTROLS_OF else "control", having) if note)
    return (
        f"Without the edges {EDGES[cut]}{f' ({notes})' if notes else ''}, {span(left)} of the advantage and "
        f"{span(kept)} of the attention remain, and the loss rises by {span([r.second_copy_nats for r in rows])} nats "
        "per token."
    )


def _heads(cells: Sequence[Cell]) -> str:
    """State the median advantage for each number of heads; empty if all models have the same number."""
    counts = sorted({c.summary.n_heads for c in cells})
    if len(counts) < 2:
        return ""
    medians = [
        median(r.advantage for c in cells if c.summary.n_heads == n and (r := uncut(c)) is not None) for n in counts
    ]
    text = ", ".join(f"{number(m)} with {plural(n, 'head')}" for n, m in zip(counts, medians, strict=True))
    return f"The median advantage over models by number of heads per layer, without ablation: {text}."


# ---- table ----------------------------------------------------------------------------------------------------------


def _table(cells: Sequence[Cell]) -> Table:
    sequences = span([r.sequences for c in cells if (r := uncut(c)) is not None], 0)
    windows = span([r.windows for c in cells for r in c.rows(SuffixCutRow)], 0)
    return Table.of(
        [
            (c, of_induction_head(c, Condition.THREE_TWO), uncut(c), of_induction_head(c, Condition.TWO_ONE))
            for c in cells
        ],
        MODEL,
        HEAD,
        Column("two tokens", "longer"),
        Column("one token", "shorter"),
        Column("difference", ("advantage", "low", "high")),
        Column("three against two", lambda _, third, *__: interval(third.advantage, third.low, third.high)),
        Column("log-probability (nats)", lambda _, __, r, ___: interval(r.gain_nats, r.gain_low, r.gain_high)),
        *(
            Column(f"without {cut}", lambda c, *_, cut=cut: _resampled(c, cut, "advantage", "low", "high"))
            for cut in CONTROLS_OF
        ),
        Column(
            "second copy, one-token matching alone (nats)",
            lambda c, *_: _resampled(c, Cut.BUT_ONE_TOKEN, "second_copy_nats", "second_copy_low", "second_copy_high"),
        ),
        *(
            Column(f"score: {label}", lambda c, *_, at=at: plain(content.share(content.of_induction_head(c), *at)))
            for label, at in CONTENT.items()
        ),
        caption="Preference of the best induction head for the longer of two matches. Two tokens, one token: its "
        "attention to the follower of each match, 0 to 1; difference: the former minus the latter; three against "
        "two: the same difference for matches of three and two tokens; log-probability: difference between the two "
        "followers. “Without”: the difference for two tokens against one when the named edges are ablated. Second "
        "copy: rise of the loss on the second copy of repeated random tokens when all edges into the head's queries "
        "and keys but those of one-token matching are ablated. Both use resample ablation. 95 % bootstrap intervals "
        f"over {sequences} sequences ({windows} windows for the second copy). Score: shares of the head's preference "
        "for the token after the earlier occurrence, on repeated random tokens, by what is compared (at the query × at "
        "the key). Current × previous is the match of one token. Previous × two back adds the second token. Two back × "
        "three or more back adds the third, and includes all content further back at the key. The CSV has both "
        "ablation methods and every set of edges.",
        csv="suffix_cuts.csv",
    )


def _resampled(cell: Cell, cut: Cut, *value: str) -> str:
    """Format a value and its interval under resample ablation of the edges of ``cut``; a dash if it was not measured.

    ``value`` names three fields of the record: the value and the two ends of its interval."""
    rows = [r for r in cell.rows(SuffixCutRow) if (r.cut, r.method) == (cut, "resample")]
    return interval(*(getattr(rows[0], name) for name in value)) if rows else "–"


def suffixes(results: Results) -> Figure | None:
    """Draw the attention to the followers of the longer and the shorter match by heads per layer, and the advantage
    with edges ablated. None without suffix matching."""
    cells = [c for c in results.cells.values() if uncut(c) is not None]
    if not cells:
        return None
    data = pd.DataFrame([line for c in cells for line in _lines(c)], columns=COLUMNS)

    def paint(canvas: Canvas) -> None:
        left, middle, right = row(canvas, 3)
        _attention(left, data, Condition.TWO_ONE)
        _attention(middle, data, Condition.THREE_TWO)
        left.legend(loc="upper left")
        _advantage(right, data[data["cut"] != ""])

    sequences = span([r.sequences for c in cells if (r := uncut(c)) is not None], 0)
    caption = (
        "Left and middle: attention to what followed the longer (filled) and the shorter match (hollow), per "
        "model. Right: the advantage (attention after the longer match minus attention after the shorter one), in the "
        "whole model (“none”) and with edges into the head resampled; “all but current × previous”: all edges but "
        "those of one-token matching; “control”: as many edges of other heads; “random”: the changes of the first two "
        "sets in random directions (of four rotations, the one that leaves least). Bars: "
        f" 95 % bootstrap intervals over {sequences} sequences."
    )
    return picture("suffixes", "Matches of one, two and three tokens", caption, data, (15.0, 4.0), paint)


def _lines(cell: Cell) -> list[tuple[object, ...]]:
    n_heads = cell.summary.n_heads
    clean = [r for name in (Condition.TWO_ONE, Condition.THREE_TWO) if (r := of_induction_head(cell, name)) is not None]
    rows = [r for r in cell.rows(SuffixCutRow) if r.method in ("", "resample") and r.cut in SHOWN]
    rows.sort(key=lambda r: r.advantage, reverse=True)
    cuts = {r.cut: r for r in rows}.values()  # of several rotations, the one that leaves least
    return [
        *((cell.name, n_heads, r.condition, "", r.longer, r.shorter, r.advantage, r.low, r.high) for r in clean),
        *((cell.name, n_heads, "", r.cut, None, None, r.advantage, r.low, r.high) for r in cuts),
    ]


def _attention(ax: Axes, data: pd.DataFrame, condition: Condition) -> None:
    data = data[data["condition"] == condition]
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


THEME = Theme(
    TITLE,
    section,
    figures=(suffixes,),
    sources={"suffixes": ("suffix_matches", "suffix_cuts")},
    tables=("suffix_matches", "suffix_predictions", "suffix_cuts"),
)
