"""In-context learning through training, with and without the heads that do induction in the end."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import plural
from pathsum.records.joint_ablation import JointAblationRow
from pathsum.records.results import Results
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, picture, row

KINDS = {  # label, line
    "whole": ("whole model", "-"),
    "induction": ("without induction heads", "--"),
    "others": ("without as many others", ":"),
    "turned": ("random directions", "-."),
}
PANELS = {"loss_drop": symbols.LOSS_DROP, "repeat_gain": "first copy − second copy\n(nats per token)"}


def joint_ablation(results: Results) -> Figure | None:
    """Loss drop and second-copy gain at each checkpoint: medians over two-layer models, resample ablation."""
    cells = [c for c in results.with_layers(2) if c.rows(JointAblationRow)]
    if not cells:
        return None
    data = pd.DataFrame([line for c in cells for r in c.rows(JointAblationRow) for line in _lines(c.name, r)])

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, len(PANELS))
        for ax, (quantity, label) in zip(axes, PANELS.items(), strict=True):
            _panel(ax, data, quantity)
            ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=label)
        canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(KINDS))

    caption = (
        "In-context learning is lost without the induction heads where dashed lines stay near 0; where dotted and "
        "dash-dotted lines stay near the solid one, the controls lose little. Thin lines: each of "
        f"{plural(len(cells), 'two-layer model')}; thick: the median. All heads with prefix matching of at least 0.1 "
        "at the end of training are ablated together (resample ablation). 95 % intervals are in the table."
    )
    return picture("joint_ablation", "Without any induction head", caption, data, (11.0, 3.8), paint)


def _lines(name: str, r: JointAblationRow) -> list[dict[str, object]]:
    """A value with the heads and one without; other ways than resampling are for the table."""
    kind = "turned" if r.method == "turned" else r.ablated
    if r.method not in ("resample", "turned"):
        return []
    at = {"cell": name, "tokens_millions": r.tokens_seen / 1e6}
    without = {"loss_drop": r.loss_drop_nats - r.loss_drop_lost, "repeat_gain": r.repeat_gain_nats - r.repeat_gain_lost}
    found: list[dict[str, object]] = [{**at, "kind": kind, "heads": r.heads, **without}]
    if kind == "induction":
        found.append(
            at | {"kind": "whole", "heads": "", "loss_drop": r.loss_drop_nats, "repeat_gain": r.repeat_gain_nats}
        )
    return found


def _panel(ax: Axes, data: pd.DataFrame, quantity: str) -> None:
    for kind, (label, line) in KINDS.items():
        part = data[data["kind"] == kind]
        colour = symbols.layer_colour(2) if kind in ("whole", "induction") else symbols.FAINT
        for _, one in part.groupby("cell", sort=False):
            mean = one.groupby("tokens_millions")[quantity].mean()
            ax.plot(mean.index, mean, color=colour, ls=line, lw=0.7, alpha=0.4)
        median = part.groupby("tokens_millions")[quantity].median()
        ax.plot(median.index, median, color=colour, ls=line, lw=2.2, label=label)
    ax.axhline(0, color=symbols.FAINT, lw=0.8)
