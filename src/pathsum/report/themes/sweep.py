"""Every model of the grid, by depth, heads and seed."""

import math
import statistics
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from scipy.special import stdtrit

from pathsum.claims.formatting import layers_label, millions, number
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, of_models, picture, row
from pathsum.report.page.document import Section, Table
from pathsum.report.theme import Figures, Theme
from pathsum.report.told import Frames

TITLE = "The sweep"
QUANTITIES = {
    "onset_millions": "phase change, half-way\n(million tokens seen)",
    "loss_drop_nats": symbols.LOSS_DROP,
    "prefix_matching": symbols.PREFIX_MATCHING,
}
FIXED, NAMELESS = "looks elsewhere by distance", "none of these"
BACK = {1: "previous token", 2: "two tokens back"}  # labels of two offsets
ROLES = (*BACK.values(), FIXED, "induction", "duplicate token", "copies the next token",
         "attends to BOS (attention sink)", NAMELESS)  # fmt: skip
HEAD = ["cell", "layer", "head"]
RENAMED = {"n_layers": "layers", "n_heads": "heads", "in_context_loss_drop_nats": "loss_drop_nats"}


def facts(t: Frames) -> pd.DataFrame:
    data = t.cells.rename(columns=RENAMED).assign(onset_millions=t.cells["onset_tokens"].astype(float) / 1e6)
    data = data[["layers", "heads", "d_head", "seed", *QUANTITIES]].astype({"prefix_matching": float})
    return data.join(_roles(t)).reset_index()


def _roles(t: Frames) -> pd.DataFrame:
    rows = t.labels[t.labels["labelled"].astype(bool)]
    offsets, names = rows["distance"].map(BACK).fillna(FIXED), rows["behaviour"].astype(str).str.split(":").str[0]
    called = rows[HEAD].assign(role=names.where(rows["distance"].isna(), offsets)).drop_duplicates()
    every = t.heads[HEAD].merge(called[called["role"].isin(ROLES)], "left").fillna({"role": NAMELESS})
    counts = pd.crosstab(every["cell"], every["role"]).reindex(columns=ROLES, fill_value=0)
    return counts.div(t.heads.groupby("cell").size(), axis=0).reindex(t.labels["cell"].unique())


def section(results: Results, figures: Figures) -> Section:
    if not results.cells:
        return told.absent(TITLE)
    t = Frames(results.cells)
    found = {"data": facts(t), "missing": results.missing}
    return told.section(TITLE, "sweep", found, {**figures, "cells": table(t)})


def table(t: Frames) -> Table:
    s = t.cells
    copying = s["copying_heads"].astype("Int64").astype(str) + " of " + (s["n_layers"] * s["n_heads"]).astype(str)
    texts = s.select_dtypes("number").map(number)
    shown = {
        "model": s.index,
        "layers": s["n_layers"],
        "heads": s["n_heads"],
        "seed": s["seed"],
        "tokens": s["tokens_seen"].map(millions),
        "held-out loss (nats)": s["val_loss_nats"],
        "in-context loss drop (nats)": s["in_context_loss_drop_nats"],
        "loss on repeats: first copy / guessing / second copy (nats)": texts["repeat_first_loss_nats"]
        + " / " + texts["repeat_guessing_nats"] + " / " + texts["repeat_second_loss_nats"],
        "top-1 accuracy on the second copy": s["repeat_top1"],
        "prefix matching": s["prefix_matching"],
        "previous token": s["previous_token"],
        "copying heads": copying.where(s["copying_heads"].notna()),
        "bigram correlation (unigram's; partial)": texts["bigram_correlation"]
        + " (" + texts["unigram_correlation"] + "; " + texts["bigram_partial_correlation"] + ")",
        "onset (tokens)": ["none" if pd.isna(tokens) else millions(tokens) for tokens in s["onset_tokens"]],
    }  # fmt: skip
    caption = (
        "Scores of the best heads, chosen on other data; copying heads: by weights. Bigram correlation: of W_U W_E "
        "with log P(next | current) of the corpus (the same for log P(next); with log P(next) held constant)."
    )
    digits = {"held-out loss (nats)": 3, "prefix matching": 3}
    return told.table(pd.DataFrame(shown), caption, digits=digits, csv="cells.csv")


def sweep(results: Results) -> Figure | None:
    """Draw onset, loss drop and prefix matching against heads per layer, and the shares of labels of heads."""
    if not any(results.layer_counts()):
        return None
    data = facts(Frames(results.cells))
    deep = data["layers"] > 0
    shown = data[~deep | (data["d_head"] == statistics.mode(data.loc[deep, "d_head"]))]  # the others are in ``widths``
    return _drawn("sweep", "What depth, heads and seed change", shown, ("heads", "heads per layer"))


def widths(results: Results) -> Figure | None:
    """Draw the same against d_head, for the total width n_heads · d_head that has the most values of d_head."""
    if not any(results.layer_counts()):
        return None
    data = facts(Frames(results.cells)).query("layers > 0")
    products = data["heads"] * data["d_head"]
    values = data.groupby(products, sort=False)["d_head"].nunique()
    if values.max() < 2:
        return None
    width = values.idxmax()
    title = f"What the width of a head changes, at a total width of {width} per layer"
    x = ("d_head", f"d_head (number of heads: {width} / d_head)")
    return _drawn("widths", title, data[products == width], x)


def _drawn(name: str, title: str, data: pd.DataFrame, x: tuple[str, str]) -> Figure:
    def paint(canvas: Canvas) -> None:
        *panels, last = row(canvas, 1 + len(QUANTITIES))
        for ax, (quantity, label) in zip(panels, QUANTITIES.items(), strict=True):
            _points(ax, data, x[0], quantity)
            ax.set(ylabel=label, xlabel=x[1])
        _shares(last, data)
        panels[0].legend(loc="best")

    caption = (
        "Points: seeds; dashes: means; bars: 95 % interval of the mean by Student's t (the range under three seeds). "
        "Right: share of the heads of each model with each label; a head may have several."
    )
    return picture(name, title, caption, data, (15.0, 4.0), paint)


def _points(ax: Axes, data: pd.DataFrame, x: str, quantity: str) -> None:
    places = sorted(set(data[x]))
    for n_layers, colour, aside, rows in _depths(data, 0.2):
        for value, group in rows.dropna(subset=[quantity]).groupby(x):
            at, values = places.index(value) + (aside if n_layers else 0.0), group[quantity].tolist()
            mean, (low, high) = statistics.mean(values), interval(values)
            ax.plot([at, at], [low, high], color=colour, lw=5, alpha=0.25, solid_capstyle="butt")
            ax.plot([at - 0.07, at + 0.07], [mean, mean], color=colour, lw=2.4)
            dots = ax.plot([at] * len(values), values, "o", color=colour, ms=5.5, alpha=0.75, mew=0)
            of_models(dots, group["cell"])
        ax.plot([], [], "o", color=colour, label=layers_label(n_layers))
    ax.set_xticks(range(len(places)), [str(p) for p in places])
    ax.set_xlim(-0.6, len(places) - 0.4)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    ax.grid(visible=False, axis="x")


def _depths(data: pd.DataFrame, distance: float = 0.0) -> list[tuple[int, str, float, pd.DataFrame]]:
    """Return for each number of layers its color, how far its points stand aside, and its rows."""
    depths = sorted(set(data["layers"]))
    asides = [distance * (i - (len(depths) - 1) / 2) for i in range(len(depths))]
    return [(n, symbols.layer_colour(n), x, data[data["layers"] == n]) for n, x in zip(depths, asides, strict=True)]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean by Student's t; the range of ``values`` if there are fewer than three."""
    n = len(values)
    if n < 3:
        return min(values), max(values)
    half = float(stdtrit(n - 1, 0.975)) * statistics.stdev(values) / math.sqrt(n)
    mean = statistics.mean(values)
    return mean - half, mean + half


def _shares(ax: Axes, data: pd.DataFrame) -> None:
    for i, role in enumerate(ROLES):
        for _, colour, aside, rows in _depths(data[data["layers"] > 0], 0.26):
            if len(known := rows.dropna(subset=[role])):
                values = known[role].tolist()
                y, mean = i + aside, statistics.mean(values)
                dots = ax.plot(values, [y] * len(values), "o", color=colour, ms=5, alpha=0.55, mew=0)
                of_models(dots, known["cell"], "x")
                ax.plot([mean, mean], [y - 0.11, y + 0.11], color=colour, lw=2.4)
    ax.set_yticks(range(len(ROLES)), ["attends at another distance" if role == FIXED else role for role in ROLES])
    ax.invert_yaxis()
    ax.set(xlim=(-0.03, 1.03), xlabel="share of a model's heads (0..1)")
    ax.grid(visible=False, axis="y")


THEME = Theme(
    TITLE,
    section,
    (sweep, widths),
    {"sweep": ("summary", "labels"), "widths": ("summary", "labels"), "cells": ("summary",)},
    relies_on=("phase_change",),
    tables=("cells",),
)
