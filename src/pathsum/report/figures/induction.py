"""How two heads make one: composition scores, and the corner where induction heads sit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.records import CompositionRow
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, picture
from pathsum.results import Cell, Results
from pathsum.storage import frame

MOST_CELLS = 6
KINDS = ("Q", "K", "V")


def composition(results: Results) -> Figure | None:
    """Q, K and V composition of every earlier with every later head, above chance, a row of panels a cell."""
    cells = [c for c in results.cells.values() if c.composition]
    if not cells:
        return None
    shown = cells[:MOST_CELLS]
    data = pd.concat([_edges(c) for c in cells], ignore_index=True)
    drawn = data[data["cell"].isin([c.name for c in shown])]
    limit = float(drawn["above_chance"].abs().max()) or 1.0

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots(len(shown), len(KINDS), squeeze=False)
        for panels, cell in zip(axes, shown, strict=True):
            for ax, kind in zip(panels, KINDS, strict=True):
                _heat(ax, cell, kind, drawn[(drawn["cell"] == cell.name) & (drawn["kind"] == kind)], limit)
        bar = canvas.colorbar(axes[0][0].collections[0], ax=axes, shrink=min(1.0, 1.6 / len(shown)), aspect=30)
        bar.set_label("composition score − chance")

    pairs = [p for c in shown if (p := _pair(c)) is not None]
    counts = ", ".join(f"{k} {int((data['significant'] & (data['kind'] == k)).sum())}" for k in KINDS)
    caption = (
        "Dots: significantly above chance (Benjamini–Hochberg q < 0.05). The box in K is the edge from the strongest "
        f"previous-token head to the best induction head. Its score above chance: {'; '.join(pairs) or 'none'}. "
        f"Significant edges over all cells: {counts}."
    )
    if len(cells) > len(shown):
        caption += f" Drawn are the first {len(shown)} of {len(cells)} cells; the table has all."
    height = 0.9 + sum(1.1 + 0.26 * max(c.summary.n_heads, 4) for c in shown)
    return picture("composition", "Which heads read which", caption, data, (12.0, height), paint)


def induction_corner(results: Results) -> Figure | None:
    """Every head past the first layer by what its QK circuit matches and its OV circuit copies."""
    rows = [
        {
            "cell": c.name,
            "head": symbols.head_label(h.layer, h.head),
            "qk_matching_positivity": h.qk_matching_positivity,
            "copying_positivity": h.copying_positivity,
            "prefix_matching": h.prefix_matching,
        }
        for c in results.cells.values()
        for h in c.heads
        if h.qk_matching_positivity is not None
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows)

    def paint(canvas: Canvas) -> None:
        ax = canvas.subplots()
        ax.add_patch(Rectangle((0.5, 0.5), 0.55, 0.55, color="#000000", alpha=0.06, lw=0))
        ax.axhline(0, color=symbols.FAINT, lw=0.8)
        ax.axvline(0, color=symbols.FAINT, lw=0.8)
        sns.scatterplot(
            data,
            x="qk_matching_positivity",
            y="copying_positivity",
            hue="prefix_matching",
            size="prefix_matching",
            hue_norm=(0, 1),
            size_norm=(0, 1),
            sizes=(30, 260),
            palette="viridis_r",
            alpha=0.85,
            ax=ax,
        )
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        ax.set(xlabel=f"QK matches the same token: positivity of\n{symbols.K_COMPOSITION_CIRCUIT}")
        ax.set(ylabel=f"OV copies: positivity of {symbols.OV_CIRCUIT}")
        ax.set_box_aspect(1)
        ax.legend(title="prefix\nmatching", loc="center left", bbox_to_anchor=(1.0, 0.5))

    strong = data[data["prefix_matching"] >= 0.3]
    inside = strong[(strong["qk_matching_positivity"] > 0.5) & (strong["copying_positivity"] > 0.5)]
    caption = (
        f"Induction heads sit in the shaded corner: of {symbols.plural(len(strong), 'head')} with prefix matching "
        f"≥ 0.3, {len(inside)} {'lies' if len(inside) == 1 else 'lie'} in it; of the {len(data) - len(strong)} others, "
        f"{int(((data['qk_matching_positivity'] > 0.5) & (data['copying_positivity'] > 0.5)).sum()) - len(inside)}."
    )
    return picture("induction_corner", "The induction corner", caption, data, (6.6, 5.2), paint)


def _edges(cell: Cell) -> pd.DataFrame:
    table = frame(cell.composition, CompositionRow)
    table.insert(0, "cell", cell.name)
    table["above_chance"] = table["value"] - table["chance"]
    table["significant"] = [e.significant for e in cell.composition]
    table["early"] = [symbols.head_label(*p) for p in zip(table["early_layer"], table["early_head"], strict=True)]
    table["late"] = [symbols.head_label(*p) for p in zip(table["late_layer"], table["late_head"], strict=True)]
    return table


def _pair(cell: Cell) -> str | None:
    previous, induction = cell.previous_token_head(), cell.induction_head()
    if previous is None or induction is None:
        return None
    ends = (previous.layer, previous.head, induction.layer, induction.head)
    for e in cell.composition:
        if e.kind == "K" and (e.early_layer, e.early_head, e.late_layer, e.late_head) == ends:
            arrow = f"{symbols.head_label(*ends[:2])} → {symbols.head_label(*ends[2:])}"
            return f"{cell.name} {arrow} {symbols.number(e.value - e.chance)}"
    return None


def _heat(ax: Axes, cell: Cell, kind: str, edges: pd.DataFrame, limit: float) -> None:
    value = edges.pivot(index="late", columns="early", values="above_chance")
    dots = edges.pivot(index="late", columns="early", values="significant").reindex_like(value)
    marks = np.where(dots.fillna(False).astype(bool), "•", "")
    sns.heatmap(
        value,
        ax=ax,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        annot=marks,
        fmt="",
        cbar=False,
        linewidths=0.5,
        linecolor="white",
        annot_kws={"fontsize": 10},
    )
    previous, induction = cell.previous_token_head(), cell.induction_head()
    if kind == "K" and previous is not None and induction is not None:
        early, late = (
            symbols.head_label(previous.layer, previous.head),
            symbols.head_label(induction.layer, induction.head),
        )
        if early in value.columns and late in value.index:
            corner = (list(value.columns).index(early), list(value.index).index(late))
            ax.add_patch(Rectangle(corner, 1, 1, fill=False, ec=symbols.ACCENT, lw=2, clip_on=False))
    ax.set_title(f"{cell.name}: {kind}-composition")
    ax.set(xlabel="earlier head", ylabel="later head")
    ax.tick_params(axis="y", rotation=0)
    ax.tick_params(axis="x", rotation=90 if len(value.columns) > 6 else 0)
    ax.tick_params(length=0)
