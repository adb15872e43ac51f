"""What alike tokens are worth to the induction head, and a copy with other names to the model."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import span
from pathsum.records.fuzzy_matching import FuzzyKind, FuzzyMatchingRow, FuzzyMeasure
from pathsum.records.results import Results
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, errors, picture, row, side_by_side

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


def fuzzy_matching(results: Results) -> Figure | None:
    """Attention by kind of earlier token, and gains from a first copy by kind of copy: a dot per model."""
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
    """A dot per row at its group's height, models of one group below each other, with its interval; ``lane`` says which
    part of the height, of how many."""
    at, lanes = lane
    shift = SPREAD * ((at + 0.5) / lanes - 0.5)
    y = [place + shift for place in side_by_side(groups.loc[data.index], order, SPREAD / lanes)]
    ax.errorbar(data["value"], y, xerr=errors(data), fmt="o", ms=4, color=colour, elinewidth=1, label=label)
    ax.set_yticks(range(len(order)), [name.removeprefix(FuzzyMeasure.GAIN) for name in order])
    ax.set_ylim(len(order) - 0.4, -0.6)
