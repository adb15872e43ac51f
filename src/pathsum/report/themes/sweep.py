"""The section with every model of the grid, by depth, heads and seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from scipy.special import stdtrit

from pathsum.claims.formatting import layers_label, millions, number, plural
from pathsum.figures import symbols
from pathsum.figures.base import Figure, picture, row
from pathsum.page.document import MODEL, Column, Section, Table
from pathsum.records.heads import HeadRow, LabelRow
from pathsum.records.results import Cell, Results
from pathsum.records.summary import CellSummary
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "The sweep"
QUANTITIES = {
    "onset_millions": "phase change, half-way\n(million tokens seen)",
    "loss_drop_nats": symbols.LOSS_DROP,
    "prefix_matching": symbols.PREFIX_MATCHING,
}
FIXED, NAMELESS = "looks elsewhere by distance", "none of these"
BACK = ("previous token", "two tokens back")  # labels of the offsets 1 and 2
ROLES = (*BACK, FIXED, "induction", "duplicate token", "copies the next token", "attends to BOS (attention sink)")


def section(results: Results, figures: Figures) -> Section:
    """Count the models of the grid, and show the results of each."""
    return Section.of(TITLE, _text(results), (*drawn(figures, "sweep", "widths"), _table(results)))


def _text(results: Results) -> tuple[str, ...]:
    counts = [f"{len(results.with_layers(n))} with {layers_label(n)}" for n in results.layer_counts()]
    missing = ", ".join(results.missing) or "none"
    return (
        f"The grid has {plural(len(results.cells), 'model')}: {', '.join(counts) or 'none'}. In files, the name of a "
        f"model gives its layers (L), heads per layer (H) and seed (S). Models still to be made: {missing}.",
    )


def _table(results: Results) -> Table:
    return Table.of(
        results.cells.values(),
        MODEL,
        Column("layers", "summary.n_layers"),
        Column("heads", "summary.n_heads"),
        Column("seed", "summary.seed"),
        Column("tokens", lambda c: millions(c.summary.tokens_seen)),
        Column("held-out loss (nats)", "summary.val_loss_nats", 3),
        Column("in-context loss drop (nats)", "summary.in_context_loss_drop_nats"),
        Column(
            "loss on repeats: first copy / guessing among the tokens drawn / second copy (nats)",
            lambda c: _repeat(c.summary),
        ),
        Column("top-1 accuracy on the second copy", "summary.repeat_top1"),
        Column("prefix matching", "summary.prefix_matching", 3),
        Column("previous token", "summary.previous_token"),
        Column("copying heads", _copying),
        Column("bigram correlation (unigram's; partial)", lambda c: _correlations(c.summary)),
        Column("onset (tokens)", lambda c: "none" if (n := c.summary.onset_tokens) is None else millions(n)),
        caption="Every model of the grid. Heads: per layer. Tokens: seen in training. Prefix matching: of the best "
        "head; previous token: mean attention to it, of the best first-layer head (both chosen on other data). Copying "
        "heads: by weights. Repeats are repeated random tokens. "
        "Bigram correlation: of W_U W_E with log P(next | current) of the corpus; in parentheses, the correlation of "
        "log P(next) with log P(next | current), and the partial correlation of W_U W_E with log P(next | current), "
        "log P(next) held constant.",
        csv="cells.csv",
    )


def _repeat(s: CellSummary) -> str:
    return " / ".join(map(number, (s.repeat_first_loss_nats, s.repeat_guessing_nats, s.repeat_second_loss_nats)))


def _copying(cell: Cell) -> str:
    copying = cell.summary.copying_heads
    return "–" if copying is None else f"{copying} of {len(cell.rows(HeadRow))}"


def _correlations(s: CellSummary) -> str:
    return f"{number(s.bigram_correlation)} ({number(s.unigram_correlation)}; {number(s.bigram_partial_correlation)})"


def sweep(results: Results) -> Figure | None:
    """Draw onset, loss drop and prefix matching against heads per layer, with a point per seed, and the share of each
    model's heads with each label."""
    cells = list(results.cells.values())
    if not any(c.rows(HeadRow) for c in cells):
        return None
    usual = statistics.mode(c.summary.d_head for c in cells if c.rows(HeadRow))
    shown = [c for c in cells if not c.rows(HeadRow) or c.summary.d_head == usual]  # the others are in ``widths``
    return _drawn("sweep", "What depth, heads and seed change", shown, ("heads", "heads per layer"))


def widths(results: Results) -> Figure | None:
    """Draw the quantities of ``sweep`` against d_head, for models with the same n_heads · d_head (the product with
    the most values of d_head). None if no two such models differ in d_head."""
    by_width: dict[int, list[Cell]] = {}
    for c in (c for c in results.cells.values() if c.rows(HeadRow)):
        by_width.setdefault(c.summary.n_heads * c.summary.d_head, []).append(c)
    cells = max(by_width.values(), key=lambda some: len({c.summary.d_head for c in some}), default=[])
    if len({c.summary.d_head for c in cells}) < 2:
        return None
    width = cells[0].summary.n_heads * cells[0].summary.d_head
    title = f"What the width of a head changes, at a total width of {width} per layer"
    return _drawn("widths", title, cells, ("d_head", f"d_head (number of heads: {width} / d_head)"))


def _drawn(name: str, title: str, cells: Sequence[Cell], x: tuple[str, str]) -> Figure:
    data = pd.DataFrame([_measured(c) for c in cells])

    def paint(canvas: Canvas) -> None:
        *panels, last = row(canvas, 1 + len(QUANTITIES))
        for ax, (quantity, label) in zip(panels, QUANTITIES.items(), strict=True):
            _points(ax, data, x[0], quantity)
            ax.set(ylabel=label, xlabel=x[1])
        _shares(last, data)
        panels[0].legend(loc="best")

    seeds = data.groupby(["layers", x[0]])["seed"].nunique()
    interval = (
        "the 95 % interval of the mean over seeds (Student's t; the range where fewer than three seeds have a value)"
        if seeds.max() > 2
        else "the range over seeds (under three: too few for an interval of the mean)"
    )
    none = []
    for n in sorted({c.summary.n_layers for c in cells}):
        onsets = [c.summary.onset_tokens for c in cells if c.summary.n_layers == n]
        none.append(f"{onsets.count(None)} of {len(onsets)} models with {layers_label(n)}")
    caption = (
        f"Points are seeds, dashes means over seeds, and bars {interval}. A model without a phase change has no point "
        f"in the first panel: {', '.join(none)}. Right: share of the heads with each label, a point per model, dashes "
        "means over models; a head may have several labels."
    )
    return picture(name, title, caption, data, (15.0, 4.0), paint)


def _measured(cell: Cell) -> dict[str, object]:
    """Return the quantities to draw of a model, and the share of its heads with each label."""
    s = cell.summary
    return {
        "cell": s.cell,
        "layers": s.n_layers,
        "heads": s.n_heads,
        "d_head": s.d_head,
        "seed": s.seed,
        "onset_millions": math.nan if s.onset_tokens is None else s.onset_tokens / 1e6,
        "loss_drop_nats": s.in_context_loss_drop_nats,
        "prefix_matching": math.nan if s.prefix_matching is None else s.prefix_matching,
        **_roles(cell),
    }


def _roles(cell: Cell) -> dict[str, object]:
    """Return the share of a model's heads with each label of ROLES, and with none of them (NAMELESS)."""
    if not cell.rows(LabelRow):
        return dict.fromkeys((*ROLES, NAMELESS), math.nan)
    labeled = [(_name(r), (r.layer, r.head)) for r in cell.rows(LabelRow) if r.labelled]
    called = {role: {head for name, head in labeled if name == role} for role in ROLES}
    called[NAMELESS] = {(h.layer, h.head) for h in cell.rows(HeadRow)} - set().union(*called.values())
    return {role: len(heads) / len(cell.rows(HeadRow)) for role, heads in called.items()}


def _name(r: LabelRow) -> str:
    """Return the name of a label. Offsets of one and two tokens have the names in BACK, and other offsets are FIXED."""
    if r.distance is None:
        return r.name
    return BACK[r.distance - 1] if r.distance in (1, 2) else FIXED


def _points(ax: Axes, data: pd.DataFrame, x: str, quantity: str) -> None:
    depths, places = sorted(set(data["layers"])), sorted(set(data[x]))
    for n_layers in depths:
        colour = symbols.layer_colour(n_layers)
        aside = 0.2 * (depths.index(n_layers) - (len(depths) - 1) / 2) if n_layers else 0.0
        for place, value in enumerate(places):
            part = data[(data["layers"] == n_layers) & (data[x] == value)]
            if values := [float(v) for v in part[quantity].dropna()]:
                _group(ax, place + aside, values, colour)
        ax.plot([], [], "o", color=colour, label=layers_label(n_layers))
    ax.set_xticks(range(len(places)), [str(p) for p in places])
    ax.set_xlim(-0.6, len(places) - 0.4)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    ax.grid(visible=False, axis="x")


def _group(ax: Axes, x: float, values: Sequence[float], colour: str) -> None:
    mean, (low, high) = statistics.mean(values), interval(values)
    ax.plot([x, x], [low, high], color=colour, lw=5, alpha=0.25, solid_capstyle="butt")
    ax.plot([x - 0.07, x + 0.07], [mean, mean], color=colour, lw=2.4)
    ax.plot([x] * len(values), values, "o", color=colour, ms=5.5, alpha=0.75, mew=0)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean by Student's t; the range of ``values`` if there are fewer than three."""
    n = len(values)
    if n < 3:
        return min(values), max(values)
    half = float(stdtrit(n - 1, 0.975)) * statistics.stdev(values) / math.sqrt(n)
    mean = statistics.mean(values)
    return mean - half, mean + half


def _shares(ax: Axes, data: pd.DataFrame) -> None:
    roles = (*ROLES, NAMELESS)
    depths = [n for n in sorted(set(data["layers"])) if n > 0]
    for i, role in enumerate(roles):
        for n_layers in depths:
            values = [float(v) for v in data.loc[data["layers"] == n_layers, role].dropna()]
            if not values:
                continue
            y = i + 0.26 * (depths.index(n_layers) - (len(depths) - 1) / 2)
            colour = symbols.layer_colour(n_layers)
            ax.plot(values, [y] * len(values), "o", color=colour, ms=5, alpha=0.55, mew=0)
            mean = statistics.mean(values)
            ax.plot([mean, mean], [y - 0.11, y + 0.11], color=colour, lw=2.4)
    ax.set_yticks(range(len(roles)), ["attends at another distance" if role == FIXED else role for role in roles])
    ax.invert_yaxis()
    ax.set(xlim=(-0.03, 1.03), xlabel="share of a model's heads (0..1)")
    ax.grid(visible=False, axis="y")


THEME = Theme(
    TITLE,
    section,
    (sweep, widths),
    {"sweep": ("summary", "labels"), "widths": ("summary", "labels"), "cells": ("summary",)},
    {},
    ("phase_change",),
    tables=("cells",),
)
