"""The section on fuzzy matching: similar but unequal tokens, and renamed copies (docs/framework.md §5.13)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import head_label, interval, plural, span
from pathsum.figures import symbols
from pathsum.figures.base import Figure, errors, picture, row, side_by_side
from pathsum.page.document import MODEL, Column, Section, Table, Text
from pathsum.records.fuzzy_matching import FuzzyKind, FuzzyMatchingRow, FuzzyMeasure
from pathsum.records.results import Cell, Results
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Matching similar tokens"
DIFFERS = {FuzzyKind.CASE: "that differs only in case", FuzzyKind.SPACE: "that differs only in a leading space"}
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
SPREAD = 0.6  # share of the height between two groups over which the dots of one group are spread


def section(results: Results, figures: Figures) -> Section:
    """Show the matching of variants by case and by leading space, and the effect of renamed copies."""
    cells = [c for c in results.cells.values() if c.rows(FuzzyMatchingRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no two-layer model to test.",))
    return Section.of(TITLE, (*_variants(cells), *_renamed(cells)), (*drawn(figures, "fuzzy_matching"), _table(cells)))


def found(cells: Sequence[Cell], kind: str, measure: str) -> list[FuzzyMatchingRow]:
    """Return the rows with this kind and measure, one per model that has it."""
    return [r for c in cells for r in c.rows(FuzzyMatchingRow) if (r.kind, r.measure) == (kind, measure)]


def _values(cells: Sequence[Cell], kind: str, measure: str) -> str:
    return span([r.value for r in found(cells, kind, measure)])


def _verb(rows: Sequence[FuzzyMatchingRow], does: str, not_shown: str, does_not: str) -> str:
    """Choose a verb by the 95 % intervals: ``does`` if any lies above 0 (with the number of models, unless all do);
    ``does_not`` if all lie below 0; otherwise ``not_shown``."""
    above = sum(r.low > 0 for r in rows)
    if above:
        return does if above == len(rows) else f"{does} in {above} of {len(rows)} models"
    return does_not if all(r.high < 0 for r in rows) else not_shown


def _variants(cells: Sequence[Cell]) -> tuple[str, ...]:
    method = (
        "This section tests whether the induction head matches tokens that are similar but not equal. It has no "
        "verdict: the claims were frozen before it was measured. Each sequence consists of different random tokens; "
        "the last one is the query. One earlier token, the follower, stands directly after a token that equals the "
        "query, after a variant of the query, or after a control: an unrelated token of similar frequency, with case "
        "and leading space as in the variant. Apart from the space, all three consist of letters only, possibly of a "
        "single one."
    )
    said = []
    shown = [kind for kind in DIFFERS if found(cells, kind, FuzzyMeasure.ATTENTION_OVER)]
    for kind in shown:
        rows = found(cells, kind, FuzzyMeasure.ATTENTION_OVER)
        attention, equal_attention, nats, equal_nats = (
            _values(cells, name, measure)
            for measure in (FuzzyMeasure.ATTENTION_OVER, FuzzyMeasure.LIKELY_OVER)
            for name in (kind, FuzzyKind.equal(kind))
        )
        said.append(
            f"A token {DIFFERS[kind]} {_verb(rows, 'is matched', 'is not shown to be matched', 'is not matched')}: "
            f"its follower gets {attention} more attention (equal token: {equal_attention}) and {nats} nats more "
            f"log-probability (equal token: {equal_nats}) than the follower of the control."
        )
    if not shown:
        return (method + " This vocabulary has too few such tokens to test.",)
    scores = [
        f"{_values(cells, kind, FuzzyMeasure.SCORE_OVER)} for a token {DIFFERS[kind]} (equal token: "
        f"{_values(cells, FuzzyKind.equal(kind), FuzzyMeasure.SCORE_OVER)})"
        for kind in shown
        if found(cells, kind, FuzzyMeasure.SCORE_OVER)
    ]
    if scores:
        said.append(
            "The match score, computed from the weights and the mean attention of first-layer heads, compares the "
            "current token at the query with the previous token at the key. Its excess over the control's, in standard "
            f"deviations over all pairs of tokens, is {' and '.join(scores)}."
        )
    return method, " ".join(said)


def _renamed(cells: Sequence[Cell]) -> tuple[str, ...]:
    after, new = (found(cells, FuzzyKind.OVER_SHUFFLED, m) for m in (FuzzyMeasure.AFTER, FuzzyMeasure.NEW))
    if not after:
        return ()
    over, another = (
        {m: _values(cells, kind, m) for m in FuzzyMeasure.GAINS}
        for kind in (FuzzyKind.OVER_SHUFFLED, FuzzyKind.OVER_ANOTHER)
    )
    method = (
        "The second test uses text. A passage, the first copy, is followed by a second copy, in which each frequent "
        "token of three letters or more (Python's keywords excepted) is replaced throughout by another token of "
        "similar frequency that does not occur in the passage. The control puts the passage's tokens in random order "
        "before the same second copy: token frequencies are equal, so that a difference is due to order. A second "
        "control puts another passage there. The gain is how much lower the loss on the second copy is after the first "
        "copy, or after a control, than at the beginning of a sequence (nats per token)."
    )
    verbs = "helps more than the control", "is not shown to help more than the control", "helps less than the control"
    helps = _verb(after, *verbs)
    text = (
        "For an unchanged token of the second copy after an unchanged one, the gain is "
        f"{_values(cells, FuzzyKind.RENAMED, FuzzyMeasure.KEPT)} (at the same places of an exact second copy: "
        f"{_values(cells, FuzzyKind.EXACT, FuzzyMeasure.KEPT)}). For an unchanged token after a renamed one, the first "
        f"copy {helps}: its gain minus that from the control is {over[FuzzyMeasure.AFTER]}, and minus that from "
        f"another passage {another[FuzzyMeasure.AFTER]} (gain at the same places of an exact second copy: "
        f"{_values(cells, FuzzyKind.EXACT, FuzzyMeasure.AFTER)}). Matches of the tokens before the renamed token can "
        "contribute to this gain."
    )
    if new:
        better = _verb(new, "is predicted better", "is not shown to be predicted better", "is predicted worse")
        text += (
            f" A renamed token that has already occurred in the second copy under its new name {better} after the "
            f"first copy than after the control (difference of the gains {over[FuzzyMeasure.NEW]}; against another "
            f"passage {another[FuzzyMeasure.NEW]})."
        )
    return method, text


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
        *(_column(f"{m} − control (nats per token)", FuzzyKind.OVER_SHUFFLED, m) for m in FuzzyMeasure.GAINS),
        caption="Attention: attention to the follower of the variant (or of an equal token) minus attention to the "
        "follower of an unrelated token, −1 to 1. The head matches a variant if the interval of this difference is "
        "above 0, and fully if the difference is as large as that of an equal token. Match score: the same difference "
        "computed from the weights and the mean attention of first-layer heads, in standard deviations over all pairs "
        "of tokens. Gain − control: gain on the renamed second copy after the first copy, minus the gain after the "
        f"first copy's tokens in random order (control). {plural(len(cells), 'model')}; 95 % bootstrap intervals over "
        f"{families} families of similar tokens or {documents} documents.",
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
    """Draw attention by kind of earlier token, and gains by kind of first copy: a dot per model. None without these
    measurements."""
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
        left.set(xlabel=symbols.ATTENTION, title="by the token before the follower")
        for at, (copy, colour) in enumerate(COPIES.items()):
            some = data[data["kind"] == copy]
            _dots(right, some, data["measure"], FuzzyMeasure.GAINS, colour, copy, (at, len(COPIES)))
        right.axvline(0, color=symbols.FAINT, lw=1)
        right.set(xlabel="gain from the preceding passage (nats per token)", title="second copy, by target")
        right.legend(loc="upper left")

    on_left = data["measure"] == FuzzyMeasure.ATTENTION
    left_n, right_n = (span([*data["n"][on_left == at]], 0) for at in (True, False))
    caption = (
        "If the dots of the variants (case, leading space) lie to the right of those of the unrelated tokens, the "
        "induction head matches tokens that are similar but not equal. Left: its attention to the follower, by the "
        "kind of the token before it, in sequences of random tokens (chance: mean attention to the follower's position "
        "over all sequences). Right: gain, which is the loss on the second copy at the beginning of a sequence minus "
        "its loss after what precedes it. Exact copy: both copies are equal. Renamed copy: the second copy has other "
        "names. Shuffled passage and another passage: controls that precede the renamed copy in place of the first "
        "copy. Targets: unchanged tokens after a kept (unchanged) or a renamed token, and renamed tokens whose new "
        "name has occurred before. A dot per model; "
        f"bars: 95 % bootstrap intervals over {left_n} families of similar tokens (left) or {right_n} documents "
        "(right)."
    )
    return picture("fuzzy_matching", "Matches of similar tokens", caption, data, (11.0, 4.0), paint)


def _dots(
    ax: Axes,
    data: pd.DataFrame,
    groups: pd.Series,
    order: Sequence[str],
    colour: str,
    label: str | None = None,
    lane: tuple[int, int] = (0, 1),
) -> None:
    """Draw a dot with its interval for each row of ``data``, at the height of its group in ``order``. With ``lane`` =
    (i, n), the dots of a group are spread over the i-th (from 0) of n equal parts of SPREAD around it."""
    at, lanes = lane
    shift = SPREAD * ((at + 0.5) / lanes - 0.5)
    y = [place + shift for place in side_by_side(groups.loc[data.index], order, SPREAD / lanes)]
    ax.errorbar(data["value"], y, xerr=errors(data), fmt="o", ms=4, color=colour, elinewidth=1, label=label)
    ax.set_yticks(range(len(order)), [name.removeprefix(FuzzyMeasure.GAIN) for name in order])
    ax.set_ylim(len(order) - 0.4, -0.6)


THEME = Theme(TITLE, section, figures=(fuzzy_matching,), tables=("fuzzy_matching",))
