"""The section on whether the induction circuit suffices for induction (docs/framework.md §5.10)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import plural, span
from pathsum.claims.sufficiency import MOST, rows
from pathsum.figures import symbols
from pathsum.figures.base import Figure, picture, row, side_by_side, stacked
from pathsum.page.document import MODEL, Block, Column, Section, Table, Text
from pathsum.records.results import Cell, Results
from pathsum.records.roles import MATCHES
from pathsum.records.sufficiency import HEADS, PATHS, Kept, SufficiencyRow
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "The induction circuit alone"
MINIMAL = (Kept.MINIMAL, Kept.ANOTHER, Kept.NOTHING)
PANELS = {"first-layer heads, with the induction heads": HEADS[1:], "paths into the induction head": (*PATHS, *MINIMAL)}
ASKED = (Kept.CIRCUIT, Kept.KEY, Kept.KEYS, Kept.PREFERENCE, Kept.MINIMAL)  # the other sets are controls or parts
METHOD = (
    "A circuit that is necessary need not be sufficient. Here a circuit is kept and everything else is resampled: all "
    "other heads write what they write in another window. The whole circuit consists of the previous-token heads, the "
    f"heads that attend two tokens back and the induction heads (prefix matching of at least {MATCHES}). They are "
    "chosen at the last evaluation of training and on other text. What the induction heads' queries read comes from "
    "another window than what their keys read, because all windows repeat at the same positions. Norm scales respond.",
    "The paths lead into the best induction head. Its queries also read the embedding, and all else that its queries "
    "and keys read is resampled. With “scale frozen”, the norm before the head has the scale of the whole model: this "
    "is the minimal circuit, one previous-token head and one edge. Both claims are our own, since the papers do not "
    "claim sufficiency. The whole circuit was chosen after results of seeds 2, 3 and 4 had been seen, so only "
    "other seeds judge it.",
)


def section(results: Results, figures: Figures) -> Section:
    """Show the share of induction that remains if everything except the circuit is resampled."""
    cells = measured(results)
    if not cells:
        return Section(TITLE, ("No two-layer model of this sweep has an induction head after the first layer.",))
    blocks: tuple[Block, ...] = (*drawn(figures, "sufficiency"), _heads(cells), _paths(cells))
    return Section(TITLE, (*METHOD, why_not_minimal(cells)), blocks)


def measured(results: Results) -> list[Cell]:
    """Return the two-layer models with an induction head and rows of the record."""
    return [c for c in results.with_layers(2) if c.has_induction_head() and c.rows(SufficiencyRow)]


def shares(cells: Sequence[Cell], *kept: Kept) -> list[float]:
    """Return the shares of prefix matching that remain, one per row that has one."""
    return [r.matching_share for c in cells for r in rows(c, *kept) if r.matching_share is not None]


def why_not_minimal(cells: Sequence[Cell]) -> str:
    """State why one previous-token head and its key edge leave little: the shares of the larger sets of paths."""
    several = sum(" " in r.heads for c in cells for r in rows(c, Kept.KEYS))
    return (
        f"One previous-token head is not all: {several} of {plural(len(cells), 'model')} have two or more. The key "
        f"edge of the best one leaves a share of {span(shares(cells, Kept.KEY))} of prefix matching if norms respond "
        f"({span(shares(cells, Kept.MINIMAL))} with the norm scale of the whole model, which belongs to a stream that "
        f"no longer exists), the key edges of all of them {span(shares(cells, Kept.KEYS))}. With the two-token part "
        "(previous-token heads into the queries, heads that attend two tokens back into the keys) it is "
        f"{span(shares(cells, Kept.PREFERENCE))}."
    )


def _heads(cells: Sequence[Cell]) -> Table:
    return Table.of(
        [(c, r) for c in cells for r in rows(c, *HEADS[1:])],
        MODEL,
        Text("kept with the induction heads", "kept"),
        Text("heads", lambda c, r: f"{r.heads or 'none'} of {c.summary.n_heads}"),
        Column("prefix matching left (share)", ("matching_share", "matching_low", "matching_high")),
        Column("second-copy gain left (share)", ("gain_share", "gain_low", "gain_high")),
        Column("loss drop on text left (share)", ("loss_drop_share", "loss_drop_low", "loss_drop_high")),
        caption="Share of the whole model's value that remains if only these first-layer heads and the induction heads "
        "are kept, with 95 % intervals. The first row of a model is the whole circuit. The rows without previous-token "
        "heads are its controls. A circuit of all first-layer heads of a model says little. The loss drop is measured "
        "on text for the circuit and one control, minus that of the bigram model on the same windows.",
        csv="sufficiency.csv",
    )


def _paths(cells: Sequence[Cell]) -> Table:
    found = [(kept, shares(cells, kept)) for kept in (*PATHS, *MINIMAL)]
    return Table.of(
        [(kept, values) for kept, values in found if values],
        Text("kept paths", lambda kept, _: str(kept)),
        Column("prefix matching left (median share)", lambda _, values: median(values)),
        Column("range", lambda _, values: span(values)),
        Column(f"at least {MOST}", lambda _, values: f"{sum(v >= MOST for v in values)} of {len(values)}"),
        caption="Share of the induction head's prefix matching that remains if its queries and keys read only these "
        "paths: median and range over models, or over heads for another head.",
        source="sufficiency",
    )


def sufficiency(results: Results) -> Figure | None:
    """Draw the share of prefix matching that remains with each set of heads and of paths, with a point per model. None
    without an induction head."""
    cells = measured(results)
    if not cells:
        return None
    data = stacked(cells, SufficiencyRow)
    data = data[data["kept"] != Kept.MODEL]

    def paint(canvas: Canvas) -> None:
        for ax, (title, kept) in zip(row(canvas, len(PANELS)), PANELS.items(), strict=True):
            _panel(ax, data, [k for k in kept if k in set(data["kept"])])
            ax.set_title(title)

    caption = (
        "Share of the induction head's prefix matching that remains if only these heads (left) or paths (right) are "
        f"kept and everything else is resampled. A dot per model ({len(cells)}); for another head, a dot per head. "
        "Blue: what is asked; gray: controls and parts. Dashed: what the claims need."
    )
    return picture("sufficiency", "What suffices for induction", caption, data, (12.5, 4.2), paint)


def _panel(ax: Axes, data: pd.DataFrame, kept: Sequence[Kept]) -> None:
    part = data[data["kept"].isin(kept)].dropna(subset="matching_share")
    colours = [symbols.layer_colour(2) if k in ASKED else symbols.FAINT for k in part["kept"]]
    ax.scatter(part["matching_share"], side_by_side(part["kept"], kept, 0.5), c=colours, s=34, alpha=0.7, linewidths=0)
    ax.axvline(MOST, color=symbols.FAINT, ls="--", lw=1.2, zorder=0)
    ax.set_yticks(range(len(kept)), [str(k) for k in kept])
    ax.set(xlabel="share of prefix matching left", xlim=(-0.05, 1.1), ylim=(len(kept) - 0.5, -0.5))


THEME = Theme(TITLE, section, figures=(sufficiency,), tables=("sufficiency",))
