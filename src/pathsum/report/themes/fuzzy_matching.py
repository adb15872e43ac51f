"""Matches of tokens that are alike but not equal, and the effect of a first copy with other names."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import head_label, interval, plural, span
from pathsum.records.fuzzy_matching import FuzzyKind, FuzzyMatchingRow, FuzzyMeasure
from pathsum.records.results import Cell, Results
from pathsum.report import symbols
from pathsum.report.document import MODEL, Column, Section, Table, Text
from pathsum.report.figures.base import Figure, errors, picture, row, side_by_side
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Matching tokens that are alike"
DIFFERS = {FuzzyKind.CASE: "that differs by case alone", FuzzyKind.SPACE: "that differs by a leading space alone"}
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
COLUMNS = ["cell", "kind", "measure", "value", "low", "high", "n"]
SPREAD = 0.6  # of the height between two groups


def section(results: Results, figures: Figures) -> Section:
    """Describe variants by case and by leading space, and renamed copies."""
    cells = [c for c in results.cells.values() if c.rows(FuzzyMatchingRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no two-layer model to test.",))
    return Section.of(TITLE, (_variants(cells), _renamed(cells)), (*drawn(figures, "fuzzy_matching"), _table(cells)))


def found(cells: Sequence[Cell], kind: str, measure: str) -> list[FuzzyMatchingRow]:
    """Return the row of each model that has it."""
    return [r for c in cells for r in c.rows(FuzzyMatchingRow) if (r.kind, r.measure) == (kind, measure)]


def _values(cells: Sequence[Cell], kind: str, measure: str) -> str:
    return span([r.value for r in found(cells, kind, measure)])


def _verb(rows: Sequence[FuzzyMatchingRow], does: str, not_shown: str, does_not: str) -> str:
    """Choose the words that the intervals allow: ``does`` where all lie above 0, with the number of models where some
    do; ``does_not`` where all lie below 0; else ``not_shown``."""
    above = sum(r.low > 0 for r in rows)
    if above:
        return does if above == len(rows) else f"{does} in {above} of {len(rows)} models"
    return does_not if all(r.high < 0 for r in rows) else not_shown


def _variants(cells: Sequence[Cell]) -> str:
    text = (
        "This section tests whether the induction head matches tokens that are alike but not equal. It has no verdict: "
        "the claims were frozen before it was measured. In sequences of random tokens that differ, the last token is "
        "the query, and before an earlier token, the follower, stands a token equal to the query, a variant of it, or "
        "an unrelated token of the variant's form and similar frequency (the control). All are of letters, single "
        "letters included."
    )
    shown = [kind for kind in DIFFERS if found(cells, kind, FuzzyMeasure.ATTENTION_OVER)]
    for kind in shown:
        rows = found(cells, kind, FuzzyMeasure.ATTENTION_OVER)
        attention, equal_attention, nats, equal_nats = (
            _values(cells, name, measure)
            for measure in (FuzzyMeasure.ATTENTION_OVER, FuzzyMeasure.LIKELY_OVER)
            for name in (kind, FuzzyKind.equal(kind))
        )
        text += (
            f" The induction head {_verb(rows, 'matches', 'is not shown to match', 'does not match')} a token "
            f"{DIFFERS[kind]}: the follower of such a token gets {attention} more attention than that of an unrelated "
            f"token, and the model's log-probability of it is {nats} nats higher. For an equal token the differences "
            f"are {equal_attention} (attention) and {equal_nats} nats."
        )
    if not shown:
        return text + " This vocabulary has too few such pairs to test."
    scores = [
        f"{name} {_values(cells, name, FuzzyMeasure.SCORE_OVER)}"
        for kind in shown
        for name in (kind, FuzzyKind.equal(kind))
        if found(cells, name, FuzzyMeasure.SCORE_OVER)
    ]
    if scores:
        text += (
            " By weights, the score of current token × previous token minus that of the unrelated token, in standard "
            f"deviations over all pairs of tokens: {'; '.join(scores)}."
        )
    return text


def _renamed(cells: Sequence[Cell]) -> str:
    after, new = (found(cells, FuzzyKind.OVER_SHUFFLED, m) for m in (FuzzyMeasure.AFTER, FuzzyMeasure.NEW))
    if not after:
        return ""
    over, another = (
        {m: _values(cells, kind, m) for m in FuzzyMeasure.GAINS}
        for kind in (FuzzyKind.OVER_SHUFFLED, FuzzyKind.OVER_ANOTHER)
    )
    text = (
        "In text, a passage is followed by itself with each frequent token of three letters or more (Python's keywords "
        "excepted) replaced, one for one, by another of similar frequency that does not occur in it. The control is "
        "the passage's tokens in random order before the same second copy: it has the same token frequencies, so that "
        "a difference is due to order. After tokens that keep their name the first copy lowers the loss by "
        f"{_values(cells, FuzzyKind.RENAMED, FuzzyMeasure.KEPT)} nats per token (exact copy "
        f"{_values(cells, FuzzyKind.EXACT, FuzzyMeasure.KEPT)}). After a renamed token it "
        f"{_verb(after, 'helps', 'is not shown to help', 'does not help')}: {over[FuzzyMeasure.AFTER]} nats more than "
        f"the control does ({another[FuzzyMeasure.AFTER]} nats more than another passage does). An exact copy gains "
        f"{_values(cells, FuzzyKind.EXACT, FuzzyMeasure.AFTER)} nats there. Matches of the tokens before it count too."
    )
    if new:
        better = _verb(new, "is predicted better", "is not shown to be predicted better", "is predicted worse")
        text += (
            f" A new name that the copy has had before {better} after the first copy than after the control "
            f"({over[FuzzyMeasure.NEW]} nats; against another passage {another[FuzzyMeasure.NEW]} nats)."
        )
    return text


def _table(cells: Sequence[Cell]) -> Table:
    tokens = [name for kind in FuzzyKind.VARIANTS for name in (FuzzyKind.equal(kind), kind)]
    every = [r for c in cells for r in c.rows(FuzzyMatchingRow)]
    families, documents = (span([r.n for r in every if (r.layer is None) == gain], 0) for gain in (False, True))
    return Table.of(
        cells,
        MODEL,
        Text("head", _head),
        *(_column(f"{name}: attention", name, FuzzyMeasure.ATTENTION_OVER) for name in tokens),
        *(_column(f"{name}: match score", name, FuzzyMeasure.SCORE_OVER) for name in tokens),
        *(
            _column(f"{m.removeprefix(FuzzyMeasure.GAIN)} (nats per token)", FuzzyKind.OVER_SHUFFLED, m)
            for m in FuzzyMeasure.GAINS
        ),
        caption="Attention: attention to the follower of the variant (or of an equal token) minus that to the follower "
        "of an unrelated token (−1 to 1). Match score: the same difference computed from the weights, in standard "
        "deviations over all pairs of tokens. The head matches a variant if its attention value is above 0, and fully "
        "if it is as large as that of an equal token. Gain columns: how much a first copy with renamed tokens lowers "
        f"the loss, minus how much the same tokens in random order do. {plural(len(cells), 'model')}; in brackets 95 % "
        f"bootstrap intervals over {families} families of alike tokens or {documents} documents.",
        csv="fuzzy_matching.csv",
    )


def _head(cell: Cell) -> str:
    rows = (r for r in cell.rows(FuzzyMatchingRow) if r.layer is not None)
    return next((head_label(r.layer or 0, r.head or 0) for r in rows), "–")


def _column(name: str, kind: str, measure: str) -> Column:
    def value(cell: Cell) -> str:
        return next((interval(r.value, r.low, r.high) for r in found([cell], kind, measure)), "–")

    return Column(name, value)


def fuzzy_matching(results: Results) -> Figure | None:
    """Draw attention by kind of earlier token, and gains from a first copy by kind of copy: a dot per model."""
    lines = [
        (c.name, r.kind, r.measure, r.value, r.low, r.high, r.n)
        for c in results.cells.values()
        for r in c.rows(FuzzyMatchingRow)
        if (r.measure == FuzzyMeasure.ATTENTION and r.kind in KINDS) or r.kind in COPIES
    ]
    if not lines:
        return None
    data = pd.DataFrame(lines, columns=COLUMNS)

    def paint(canvas: Canvas) -> None:
        left, right = row(canvas, 2)
        attention = data[data["measure"] == FuzzyMeasure.ATTENTION]
        _dots(left, attention, attention["kind"], KINDS, symbols.ACCENT)
        left.set(xlabel=symbols.ATTENTION, title="before the follower stands a token …")
        for at, (copy, colour) in enumerate(COPIES.items()):
            some = data[data["kind"] == copy]
            _dots(right, some, data["measure"], FuzzyMeasure.GAINS, colour, copy, (at, len(COPIES)))
        right.axvline(0, color=symbols.FAINT, lw=1)
        right.set(xlabel="gain from what stands before (nats per token)", title="second copy, by target")
        right.legend(loc="upper left")

    on_left = data["measure"] == FuzzyMeasure.ATTENTION
    left_n, right_n = (span([*data["n"][on_left == at]], 0) for at in (True, False))
    caption = (
        "If the dots of variants (case, leading space) lie to the right of the unrelated token's, the induction head "
        "matches tokens that are alike but not equal. Left: its attention to the follower of an earlier token, by that "
        "token's kind, in sequences of random tokens. Right: loss of a passage behind the beginning of the sequence "
        "minus its loss behind a first copy, behind a first copy whose names differ, behind the first copy's tokens in "
        f"random order, behind another passage. A dot per model; bars: 95 % bootstrap over {left_n} families of alike "
        f"tokens (left) or {right_n} documents (right)."
    )
    return picture("fuzzy_matching", "Matches of tokens that are alike", caption, data, (11.0, 4.0), paint)


def _dots(
    ax: Axes,
    data: pd.DataFrame,
    groups: pd.Series,
    order: Sequence[str],
    colour: str,
    label: str | None = None,
    lane: tuple[int, int] = (0, 1),
) -> None:
    """Draw a dot with its interval for each row, at the height of its group, models of one group below each other;
    ``lane`` is the part of the height to use, of how many."""
    at, lanes = lane
    shift = SPREAD * ((at + 0.5) / lanes - 0.5)
    y = [place + shift for place in side_by_side(groups.loc[data.index], order, SPREAD / lanes)]
    ax.errorbar(data["value"], y, xerr=errors(data), fmt="o", ms=4, color=colour, elinewidth=1, label=label)
    ax.set_yticks(range(len(order)), [name.removeprefix(FuzzyMeasure.GAIN) for name in order])
    ax.set_ylim(len(order) - 0.4, -0.6)


THEME = Theme(TITLE, section, figures=(fuzzy_matching,), tables=("fuzzy_matching",))
