"""The figure of the effects of ablating each head."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import head_label
from pathsum.claims.reliability import coverage
from pathsum.figures import symbols
from pathsum.figures.base import Figure, errors, picture
from pathsum.records.ablations import AblationRow
from pathsum.records.results import Cell, Results

MOST_CELLS = 4
PANELS = {"loss": "held-out text", "second_copy": "second copy of random tokens"}
LOSSES = [f"{panel}_{part}" for panel in PANELS for part in ("nats", "low", "high")]
STYLES = {  # marker, its fill color (None: the color of its edge) and its label
    "zero": ("o", "white", "zero ablation"),
    "mean": ("s", "#b9d7ea", "mean ablation"),
    "resample": ("D", None, "resample ablation"),
    "rotated": ("x", None, "control: random rotation of the output subtracted"),
}


def ablations(results: Results) -> Figure | None:
    """Draw the rise of the loss on held-out text and on the second copy when the write of each head is replaced, for
    each method (docs/framework.md §5.8) and the first MOST_CELLS models of at least two layers. Later layers are
    recomputed. None without such models."""
    cells = [c for c in results.cells.values() if c.summary.n_layers > 1 and c.rows(AblationRow)]
    if not cells:
        return None
    shown = cells[:MOST_CELLS]
    rows = [
        (c.name, head_label(a.layer, a.head), a.method, *(getattr(a, name) for name in LOSSES))
        for c in cells
        for a in c.rows(AblationRow)
        if a.target == "head" and a.patterns == "recomputed"
    ]
    data = pd.DataFrame(rows, columns=["cell", "head", "instead", *LOSSES])

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots(len(shown), len(PANELS), squeeze=False)
        for panels, cell in zip(axes, shown, strict=True):
            for ax, column in zip(panels, PANELS, strict=True):
                _panel(ax, cell, column, data[data["cell"] == cell.name])
        canvas.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=len(STYLES))

    windows = " or ".join(str(n) for n in sorted({a.windows for c in cells for a in c.rows(AblationRow)}))
    caption = (
        "Rise of the loss when the output of one head is replaced and later layers are recomputed; a negative value "
        "means that the loss falls. Shaded: the first-layer head that attends most to the previous token, and the head "
        "with the highest prefix matching. Where these two heads do induction, ablating either should raise the loss "
        f"on the second copy. Bars: 95 % bootstrap intervals, on {windows} windows of held-out text and as many of "
        f"repeated random tokens. {coverage(results)}"
    ).strip()
    if len(cells) > len(shown):
        caption += f" The figure shows the first {len(shown)} of {len(cells)} models; the CSV contains all."
    return picture("ablations", "Loss when each head is ablated", caption, data, (12.0, 0.6 + 2.7 * len(shown)), paint)


def _panel(ax: Axes, cell: Cell, column: str, data: pd.DataFrame) -> None:
    heads = list(dict.fromkeys(data["head"]))
    for offset, (method, (marker, filling, label)) in enumerate(STYLES.items()):
        part = data[data["instead"] == method]
        x = [heads.index(h) + 0.18 * (offset - 1.5) for h in part["head"]]
        bars = errors(part, f"{column}_nats", f"{column}_low", f"{column}_high")
        colour = symbols.FAINT if method == "rotated" else symbols.layer_colour(cell.summary.n_layers)
        style: dict[str, Any] = {"fmt": marker, "color": colour, "mfc": filling or colour, "ms": 5, "lw": 1.2}
        ax.errorbar(x, part[f"{column}_nats"], yerr=bars, label=label, **style)
    roles = (("previous-\ntoken head", cell.previous_token_head()), ("induction\nhead", cell.induction_head()))
    for name, head in roles:
        if head is not None:
            at = heads.index(head_label(head.layer, head.head))
            ax.axvspan(at - 0.45, at + 0.45, color=symbols.ACCENT, alpha=0.07, lw=0)
            ax.annotate(name, (at, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=8.5)
    ax.axhline(0, color=symbols.FAINT, lw=0.8)
    ax.set_xticks(range(len(heads)), heads, rotation=90 if len(heads) > 10 else 0)
    ax.set(ylabel="rise of the loss under ablation\n(nats per token)")
    ax.set_title(f"{cell.name}: {PANELS[column]}", pad=28)
