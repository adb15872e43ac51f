"""The section on the joint ablation of all induction heads, over training (docs/framework.md §5.11)."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import plural, span
from pathsum.claims.joint_ablation import at_the_end, controls
from pathsum.figures import symbols
from pathsum.figures.base import Figure, picture, row
from pathsum.page.document import MODEL, Column, Section, Table, Text
from pathsum.records.ablations import CONTROL
from pathsum.records.joint_ablation import INDUCTION, OTHERS, JointAblationRow
from pathsum.records.results import Cell, Results
from pathsum.records.roles import MATCHES
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Joint ablation of all induction heads"
METHOD_NAMES = {CONTROL: "random directions (control)"}  # where the name differs from the record's
LINES = {  # label and line style
    "whole": ("whole model", "-"),
    INDUCTION: ("without induction heads", "--"),
    OTHERS: ("without as many other heads", ":"),
    CONTROL: ("random directions", "-."),
}
PANELS = {"loss_drop": symbols.LOSS_DROP, "repeat_gain": "first copy − second copy\n(nats per token)"}


def section(results: Results, figures: Figures) -> Section:
    """Show the effect of ablating all induction heads together, by zero, mean and resample ablation, with controls."""
    cells = [c for c in results.with_layers(2) if c.rows(JointAblationRow)]
    if not cells:
        return Section(TITLE, ("No two-layer model of this sweep has an induction head to ablate.",))
    method = (
        f"All heads with a prefix-matching score of at least {MATCHES} at the last evaluation of training are ablated "
        "together, at every third checkpoint, counted back from the last (none from before 5 % of training, unless "
        "the loss is already below that of the bigram model), on windows that were not used to choose them. One "
        "control ablates as many other heads of the same layers, chosen at random, by the same method. Its effect is "
        "compared window by window with that of ablating the induction heads. The other control subtracts what the "
        "induction heads write, rotated in random directions, by several random rotations. Each is compared with the "
        "ablation method under which the loss drop falls least. From the loss drop, that of the smoothed bigram model "
        "on the same windows is subtracted: the part that the text alone makes. If a layer has fewer other heads than "
        "induction heads, all its other heads are ablated. This does not count as a control, and the claim leaves such "
        "models out; the table marks it with both numbers, such as “1 of 2”."
    )
    return Section(TITLE, (method,), (*drawn(figures, "joint_ablation"), _table(cells)))


def _table(cells: list[Cell]) -> Table:
    return Table.of(
        [(c, r) for c in cells for r in _shown(at_the_end(c))],
        MODEL,
        Text("heads", lambda c, r: r.heads if r.ablated == INDUCTION else f"{r.heads} (control{_fewer(c, r)})"),
        Text("ablation", lambda _, r: METHOD_NAMES.get(r.method, r.method)),
        Column("loss drop lost (nats)", ("loss_drop_lost", "loss_drop_lost_low", "loss_drop_lost_high")),
        Column("share", lambda _, r: None if r.share is None else (r.share, r.share_low, r.share_high)),
        Column("second-copy gain lost (nats)", ("repeat_gain_lost", "repeat_gain_lost_low", "repeat_gain_lost_high")),
        caption="How much in-context learning depends on the induction heads, at the last checkpoint. Each entry is "
        "the fall of a measure when the heads are ablated, in nats per token; that of the loss drop also as a share "
        "of the whole model's. Measures: the in-context loss drop on held-out text (minus the bigram model's), and the "
        "second-copy gain on repeated random tokens (loss on the first copy minus loss on the second). The last rows "
        "of each model are the controls with the largest effect on the loss drop: of all sets of other heads and "
        "methods, and of all random rotations. Intervals: 95 % bootstrap over documents.",
        csv="joint_ablation.csv",
    )


def _shown(rows: list[JointAblationRow]) -> list[JointAblationRow]:
    others = controls(rows)
    kinds = [[r for r in others if r.ablated == kind] for kind in (OTHERS, INDUCTION)]
    return [*(r for r in rows if r not in others), *(max(k, key=lambda r: r.loss_drop_lost) for k in kinds if k)]


def _fewer(cell: Cell, r: JointAblationRow) -> str:
    most = max(x.n_heads for x in cell.rows(JointAblationRow) if x.ablated == INDUCTION)
    return f", {r.n_heads} of {most}" if r.n_heads < most else ""


def joint_ablation(results: Results) -> Figure | None:
    """Draw loss drop and second-copy gain of two-layer models at every third checkpoint: of the whole model, under
    resample ablation of the induction heads, and under the controls. None without joint ablation."""
    cells = [c for c in results.with_layers(2) if c.rows(JointAblationRow)]
    if not cells:
        return None
    data = pd.DataFrame([line for c in cells for r in c.rows(JointAblationRow) for line in _lines(c.name, r)])
    last = [r for c in cells for r in at_the_end(c)]
    earlier = [r for c in cells for r in c.rows(JointAblationRow) if r not in last]
    few, many = (span([r.windows for r in rows], 0) for rows in (earlier, last))
    fewer = (
        f" Left: dots are means over {many} windows of text, and lines over the first {few} of these, so compare dots "
        "with dots and lines with lines."
    ) * (few != many)

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, len(PANELS))
        for ax, (quantity, name) in zip(axes, PANELS.items(), strict=True):
            for kind, (label, line) in LINES.items():
                part = data[data["kind"] == kind]
                colour = symbols.layer_colour(2) if kind in ("whole", INDUCTION) else symbols.FAINT
                for _, one in part.groupby("cell", sort=False):
                    mean = one.groupby("tokens_millions")[quantity].mean()
                    _trace(ax, mean, color=colour, ls=line, lw=0.7, alpha=0.4)
                median = part.groupby("tokens_millions")[quantity].median()
                _trace(ax, median, color=colour, ls=line, lw=2.2, label=label)
            ax.axhline(0, color=symbols.FAINT, lw=0.8)
            ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=name)
        canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(LINES))

    caption = (
        "If the dashed lines stay near 0, in-context learning is lost without the induction heads; if the dotted and "
        "dash-dotted lines stay near the solid one, the controls have little effect. Thin lines: each of "
        f"{plural(len(cells), 'two-layer model')}; thick lines: the median. Left: in-context loss drop minus the "
        f"bigram model's; right: second-copy gain. All heads with prefix matching of at least {MATCHES} at the end of "
        f"training are ablated together (resample ablation). Dots: the last checkpoint, which is judged.{fewer} The "
        "table has 95 % intervals."
    )
    return picture("joint_ablation", "Joint ablation of all induction heads", caption, data, (11.0, 3.8), paint)


def _trace(ax: Axes, values: pd.Series, **style: Any) -> None:
    """Draw all checkpoints but the last as a line, and the last, which is measured on more windows, as a dot."""
    ax.plot(values.index[:-1], values.iloc[:-1], **style)
    ax.plot(
        values.index[-1:], values.iloc[-1:], "o", color=style["color"], ms=2 + style["lw"], alpha=style.get("alpha")
    )


def _lines(name: str, r: JointAblationRow) -> list[dict[str, object]]:
    """Return the values of one row to draw: the measures under ablation and, for resample ablation of the induction
    heads, those of the whole model too. Empty for zero and mean ablation, which only the table shows."""
    if r.method not in ("resample", CONTROL):
        return []
    kind = CONTROL if r.method == CONTROL else r.ablated
    at = {"cell": name, "tokens_millions": r.tokens_seen / 1e6}
    without = {"loss_drop": r.loss_drop_nats - r.loss_drop_lost, "repeat_gain": r.repeat_gain_nats - r.repeat_gain_lost}
    whole = {"loss_drop": r.loss_drop_nats, "repeat_gain": r.repeat_gain_nats}
    found: list[dict[str, object]] = [{**at, "kind": kind, "heads": r.heads, **without}]
    return [*found, {**at, "kind": "whole", "heads": "", **whole}] if kind == INDUCTION else found


THEME = Theme(TITLE, section, figures=(joint_ablation,), tables=("joint_ablation",))
