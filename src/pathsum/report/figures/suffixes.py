"""How an induction head divides its attention between matches of different length, and what that needs."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import span
from pathsum.claims.suffixes import (
    CONTROL,
    KEY_EDGE,
    LONGER_RIVALS,
    NONE,
    ONE_TOKEN,
    QUERY_EDGE,
    RIVALS,
    of_induction_head,
    uncut,
)
from pathsum.records.results import Cell, Results
from pathsum.records.suffixes import SuffixCutRow
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, errors, picture, row, side_by_side

SHOWN = {
    NONE: "none",
    QUERY_EDGE: "previous token\n→ queries",
    KEY_EDGE: "two tokens back\n→ keys",
    ONE_TOKEN: "all but current\n× previous",
    CONTROL: "control:\nother heads",
}
COLUMNS = ["cell", "n_heads", "condition", "cut", "longer", "shorter", "advantage", "low", "high"]
SPREAD = 0.5  # of the width between two groups


def suffixes(results: Results) -> Figure | None:
    """Attention to both followers by heads per layer, and the advantage with edges ablated."""
    cells = [c for c in results.cells.values() if uncut(c) is not None]
    if not cells:
        return None
    data = pd.DataFrame([line for c in cells for line in _lines(c)], columns=COLUMNS)

    def paint(canvas: Canvas) -> None:
        left, middle, right = row(canvas, 3)
        for ax, condition in ((left, RIVALS), (middle, LONGER_RIVALS)):
            _attention(ax, data[data["condition"] == condition])
            ax.set_title(f"{condition} (tokens matched)")
        left.legend(loc="upper left")
        _advantage(right, data[data["cut"] != ""])
        right.set_title("two against one, edges ablated")

    rows = [r for c in cells if (r := uncut(c)) is not None]
    caption = (
        "Where filled dots lie above hollow ones, the induction head attends more to what followed the longer of two "
        "matches. Left and middle: its attention to both followers in one sequence, a pair of dots per model, by heads "
        "per layer. Right: the difference (two tokens minus one) without ablation and with edges into the head ablated "
        "(resample ablation), a dot per model; 0 is a head that matches the current token alone. Mean over "
        f"{span([r.sequences for r in rows], 0)} sequences, each in both orders; bars: 95 % bootstrap over sequences."
    )
    return picture("suffixes", "Matches of one, two and three tokens", caption, data, (13.0, 4.0), paint)


def _lines(cell: Cell) -> list[tuple[object, ...]]:
    n_heads = cell.summary.n_heads
    clean = [r for name in (RIVALS, LONGER_RIVALS) if (r := of_induction_head(cell, name)) is not None]
    cuts = [r for r in cell.rows(SuffixCutRow) if r.method in ("", "resample") and r.cut in SHOWN]
    return [
        *((cell.name, n_heads, r.condition, "", r.longer, r.shorter, r.advantage, r.low, r.high) for r in clean),
        *((cell.name, n_heads, "", r.cut, None, None, r.advantage, r.low, r.high) for r in cuts),
    ]


def _attention(ax: Axes, data: pd.DataFrame) -> None:
    order = sorted(set(data["n_heads"]))
    x = side_by_side(data["n_heads"], order, SPREAD)
    ax.vlines(x, data["shorter"], data["longer"], color=symbols.FAINT, lw=1)
    ax.plot(x, data["longer"], "o", color=symbols.ACCENT, label="after the longer match")
    ax.plot(x, data["shorter"], "o", color=symbols.ACCENT, mfc="white", label="after the shorter match")
    ax.set_xticks(range(len(order)), [str(n) for n in order])
    ax.set(xlabel="heads per layer", ylabel=symbols.ATTENTION, ylim=(0, 1), xlim=(-0.5, len(order) - 0.5))


def _advantage(ax: Axes, data: pd.DataFrame) -> None:
    order = [cut for cut in SHOWN if cut in set(data["cut"])]
    x = side_by_side(data["cut"], order, SPREAD)
    ax.axhline(0, color=symbols.FAINT, lw=1)
    ax.errorbar(x, data["advantage"], yerr=errors(data, "advantage"), fmt="o", color=symbols.ACCENT, elinewidth=1)
    ax.set_xticks(range(len(order)), [SHOWN[cut] for cut in order], fontsize=8)
    ax.set(ylabel="advantage (attention, −1..1)", xlim=(-0.5, len(order) - 0.5))
