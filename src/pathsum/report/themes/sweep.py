"""Every model of the grid, by depth, heads and seed. The words are in sweep.md."""

from __future__ import annotations

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
from pathsum.report.figures.base import Figure, picture, row
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
REPEATS = ["repeat_first_loss_nats", "repeat_guessing_nats", "repeat_second_loss_nats"]
CORRELATIONS = ["bigram_correlation", "unigram_correlation", "bigram_partial_correlation"]
HEAD = ["cell", "layer", "head"]
RENAMED = {"n_layers": "layers", "n_heads": "heads", "in_context_loss_drop_nats": "loss_drop_nats"}


def facts(t: Frames) -> pd.DataFrame:
    """Return the quantities to draw of each model, and the share of its heads with each of ROLES."""
    data = t.cells.rename(columns=RENAMED).assign(onset_millions=t.cells["onset_tokens"].astype(float) / 1e6)
    data = data[["layers", "heads", "d_head", "seed", *QUANTITIES]].astype({"prefix_matching": float})
    return data.join(_roles(t)).reset_index()


def _roles(t: Frames) -> pd.DataFrame:
    """Return the share of each model's heads with each of ROLES."""
    rows = t.labels[t.labels["labelled"].astype(bool)]
    offsets, names = rows["distance"].map(BACK).fillna(FIXED), rows["behaviour"].astype(str).str.split(":").str[0]
    called = rows[HEAD].assign(role=names.where(rows["distance"].isna(), offsets)).drop_duplicates()
    every = t.heads[HEAD].merge(called[called["role"].isin(ROLES)], "left").fillna({"role": NAMELESS})
    counts = pd.crosstab(every["cell"], every["role"]).reindex(columns=ROLES, fill_value=0)
    return counts.div(t.heads.groupby("cell").size(), axis=0).reindex(t.labels["cell"].unique())


def section(results: Results, figures: Figures) -> Section:
    """Count the models of the grid, and show the results of each."""
    if not results.cells:
        return told.absent(TITLE)
    t = Frames(results.cells)
    found = {"data": facts(t), "missing": results.missing}
    return told.section(TITLE, "sweep", found, {**figures, "cells": table(t)})


def table(t: Frames) -> Table:
    """Return the table of all models."""
    s = t.cells
    copying = s["copying_heads"].astype("Int64").astype(str) + " of " + (s["n_layers"] * s["n_heads"]).astype(str)
    repeats = s[REPEATS].map(number).agg(" / ".join, axis=1)
    correlations = ["{} ({}; {})".format(*values) for values in s[CORRELATIONS].map(number).to_numpy()]
    shown = {
        "model": s.index,
        "layers": s["n_layers"],
        "heads": s["n_heads"],
        "seed": s["seed"],
        "tokens": s["tokens_seen"].map(millions),
        "held-out loss (nats)": s["val_loss_nats"],
        "in-context loss drop (nats)": s["in_context_loss_drop_nats"],
        "loss on repeats: first copy / guessing among the tokens drawn / second copy (nats)": repeats,
        "top-1 accuracy on the second copy": s["repeat_top1"],
        "prefix matching": s["prefix_matching"],
        "previous token": s["previous_token"],
        "copying heads": copying.where(s["copying_heads"].notna()),
        "bigram correlation (unigram's; partial)": correlations,
        "onset (tokens)": ["none" if pd.isna(tokens) else millions(tokens) for tokens in s["onset_tokens"]],
    }
    caption = (
        "Heads: per layer. Tokens: seen in training. Prefix matching: of the best head; previous token: mean attention "
        "to it, of the best first-layer head (both chosen on other data). Copying heads: by weights. Repeats are "
        "repeated random tokens. Bigram correlation: of W_U W_E with log P(next | current) of the corpus; in "
        "parentheses, the same for log P(next) in place of W_U W_E, and the partial correlation of W_U W_E with log "
        "P(next) held constant."
    )
    digits = {"held-out loss (nats)": 3, "prefix matching": 3}
    return told.table(pd.DataFrame(shown), caption, digits=digits, csv="cells.csv")


def sweep(results: Results) -> Figure | None:
    """Draw onset, loss drop and prefix matching against heads per layer, with a point per seed, and the share of each
    model's heads with each label."""
    if not any(results.layer_counts()):
        return None
    data = facts(Frames(results.cells))
    deep = data["layers"] > 0
    shown = data[~deep | (data["d_head"] == statistics.mode(data.loc[deep, "d_head"]))]  # the others are in ``widths``
    return _drawn("sweep", "What depth, heads and seed change", shown, ("heads", "heads per layer"))


def widths(results: Results) -> Figure | None:
    """Draw the quantities of ``sweep`` against d_head, for models with the same n_heads · d_head (the product with
    the most values of d_head). None if no two such models differ in d_head."""
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

    interval = (
        "the 95 % interval of the mean over seeds (Student's t; the range where fewer than three seeds have a value)"
        if data.groupby(["layers", x[0]])["seed"].nunique().max() > 2
        else "the range over seeds (under three: too few for an interval of the mean)"
    )
    none = [
        f"{rows['onset_millions'].isna().sum()} of {len(rows)} models with {layers_label(n)}"
        for n, _, _, rows in _depths(data)
    ]
    caption = (
        f"Points are seeds, dashes means over seeds, and bars {interval}. A model without a phase change has no point "
        f"in the first panel: {', '.join(none)}. Right: share of the heads with each label, a point per model, dashes "
        "means over models; a head may have several labels."
    )
    return picture(name, title, caption, data, (15.0, 4.0), paint)


def _points(ax: Axes, data: pd.DataFrame, x: str, quantity: str) -> None:
    places = sorted(set(data[x]))
    for n_layers, colour, aside, rows in _depths(data, 0.2):
        for value, group in rows.dropna(subset=[quantity]).groupby(x)[quantity]:
            at, values = places.index(value) + (aside if n_layers else 0.0), group.tolist()
            mean, (low, high) = statistics.mean(values), interval(values)
            ax.plot([at, at], [low, high], color=colour, lw=5, alpha=0.25, solid_capstyle="butt")
            ax.plot([at - 0.07, at + 0.07], [mean, mean], color=colour, lw=2.4)
            ax.plot([at] * len(values), values, "o", color=colour, ms=5.5, alpha=0.75, mew=0)
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
            if values := rows[role].dropna().tolist():
                y, mean = i + aside, statistics.mean(values)
                ax.plot(values, [y] * len(values), "o", color=colour, ms=5, alpha=0.55, mew=0)
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
