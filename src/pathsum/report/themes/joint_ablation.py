"""Joint ablation of all induction heads, over training (docs/framework.md §5.11)."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import plural
from pathsum.records.ablations import CONTROL, INDUCTION, OTHERS
from pathsum.records.results import Results
from pathsum.records.roles import MATCHES
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, picture, row
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, intervals

TITLE = "Joint ablation of all induction heads"
LINES = {  # label and line style
    "whole": ("whole model", "-"),
    INDUCTION: ("without induction heads", "--"),
    OTHERS: ("without as many other heads", ":"),
    CONTROL: ("random directions", "-."),
}
LOST = {"loss_drop_lost": "loss drop lost (nats)", "share": "share", "repeat_gain_lost": "second-copy gain lost (nats)"}
PANELS = {"loss_drop": symbols.LOSS_DROP, "repeat_gain": "first copy − second copy\n(nats per token)"}


def facts(t: Frames) -> dict[str, Any]:
    rows = t.joint_ablation[t.joint_ablation["n_layers"] > 1]
    if rows.empty:
        return {}
    ended = rows["step"] == rows.groupby("cell")["step"].transform("max")
    return {"rows": rows, "last": rows[ended], "earlier": rows[~ended], "matches": MATCHES}


def table(found: dict[str, Any]) -> Table:
    rows = pd.concat([part for _, model in found["last"].groupby("cell", sort=False) for part in _shown(model)])
    ours = rows["ablated"] == INDUCTION
    size = rows["heads"].map(lambda names: len(names.split()))  # the column n_heads is that of the model
    most = size.where(ours).groupby(rows["cell"]).transform("max").astype(int)
    fewer = (", " + size.astype(str) + " of " + most.astype(str)).where(size < most, "")
    shown = {
        "model": rows["cell"],
        "heads": rows["heads"].where(ours, rows["heads"] + " (control" + fewer + ")"),
        "ablation": rows["method"].replace(CONTROL, "random directions (control)"),
        **{heading: intervals(rows, name) for name, heading in LOST.items()},
    }
    caption = (
        "Fall of the in-context loss drop (minus the bigram model's) and of the second-copy gain (loss on the first "
        "copy of repeated random tokens minus loss on the second), with 95 % bootstrap intervals over documents. "
        "Controls: those that lose most of the loss drop."
    )
    return told.table(pd.DataFrame(shown), caption, texts=["heads", "ablation"], csv="joint_ablation.csv")


def _shown(model: pd.DataFrame) -> list[pd.DataFrame]:
    others, rotated = model["ablated"] == OTHERS, model["method"] == CONTROL
    controls = [model[kind].nlargest(1, "loss_drop_lost") for kind in (others, rotated & ~others)]
    return [model[~others & ~rotated], *controls]


def joint_ablation(results: Results) -> Figure | None:
    """Draw loss drop and second-copy gain at every third checkpoint, whole, ablated, and under the controls."""
    if not (found := facts(Frames(results.cells))):
        return None
    rows = found["rows"][found["rows"]["method"].isin(("resample", CONTROL))]
    rows = rows.assign(
        tokens_millions=rows["tokens_seen"] / 1e6,
        kind=rows["ablated"].where(rows["method"] != CONTROL, CONTROL),
        loss_drop=rows["loss_drop_nats"],
        repeat_gain=rows["repeat_gain_nats"],
    )
    whole = rows[rows["kind"] == INDUCTION].assign(kind="whole", heads="")
    without = rows.assign(**{name: rows[name] - rows[f"{name}_lost"] for name in PANELS})
    data = pd.concat([without, whole])[["cell", "tokens_millions", "kind", "heads", *PANELS]]

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, len(PANELS))
        for ax, (quantity, name) in zip(axes, PANELS.items(), strict=True):
            for kind, (label, line) in LINES.items():
                part, ours = data[data["kind"] == kind], kind in ("whole", INDUCTION)
                style = {"color": symbols.layer_colour(2) if ours else symbols.FAINT, "ls": line}
                for _, one in part.groupby("cell", sort=False):
                    _trace(ax, one.groupby("tokens_millions")[quantity].mean(), lw=0.7, alpha=0.4, **style)
                _trace(ax, part.groupby("tokens_millions")[quantity].median(), lw=2.2, label=label, **style)
            ax.axhline(0, color=symbols.FAINT, lw=0.8)
            ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=name)
        canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(LINES))

    few, many = (told.FILTERS["span"](found[part]["windows"], 0) for part in ("earlier", "last"))
    caption = (
        f"Resample ablation in {plural(data['cell'].nunique(), 'two-layer model')} (thin) and the median (thick). "
        f"Dots: the last checkpoint, which is judged, on {many} windows; lines: on {few}, so they cannot be compared."
    )
    return picture("joint_ablation", "Joint ablation of all induction heads", caption, data, (11.0, 3.8), paint)


def _trace(ax: Axes, values: pd.Series, **style: Any) -> None:
    """Draw all checkpoints but the last as a line, and the last, which is measured on more windows, as a dot."""
    ax.plot(values.iloc[:-1], **style)
    ax.plot(values.iloc[-1:], "o", color=style["color"], ms=2 + style["lw"], alpha=style.get("alpha"))


section = told.from_facts(TITLE, "joint_ablation", facts, ablations=table)
THEME = Theme(TITLE, section, figures=(joint_ablation,), tables=("joint_ablation",))
