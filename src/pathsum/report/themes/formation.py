"""The section on the order in which the parts of induction form (docs/framework.md §6.5)."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formation import by_onset, change_of
from pathsum.claims.formatting import number, plural, span
from pathsum.figures import symbols
from pathsum.figures.base import Figure, picture, row, stacked
from pathsum.page.document import Column, Section, Table
from pathsum.records.formation import ChangePointRow
from pathsum.records.results import Cell, Results
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Order of formation"
MECHANISM = ("previous_token", "key_edge_nats", "prefix_matching")
QUANTITIES = {  # in the order in which the mechanism would form
    "previous_token": "previous-token head",
    "k_composition": "K-composition",
    "key_edge_nats": "key edge",
    "prefix_matching": "prefix matching",
    "loss_drop_nats": "in-context loss drop",
    "loss_nats": "fitted bend of the loss",
}
MARKS = "osD^v"  # markers, one for each number of heads per layer
SHARE = 0.7  # share of a row's height over which its models are spread


def section(results: Results, figures: Figures) -> Section:
    """Show the change-points of two-layer models, and their order."""
    cells = [c for c in results.with_layers(2) if c.rows(ChangePointRow)]
    if not cells:
        return Section(TITLE, ("No two-layer model of this sweep changes in training.",))
    method = (
        "Each quantity is measured at the checkpoints of training: the in-context loss drop and the loss for the whole "
        "model, the others for the two heads that are the previous-token head and the induction head at the end. A "
        "rise is dated at the tokens seen when the quantity passes half of the rise for the last time. K-composition "
        "is the relative excess over chance of the composition score of these two heads. The key edge is the amount by "
        "which the induction head's preference for the token after a match falls when its keys read the previous-token "
        "head's output on another window. The loss over log tokens is fitted by two straight lines that meet; it is "
        "dated at the bend where they meet, if the second line is steeper and the two fit clearly better than one. The "
        "onset in the verdicts differs a little from the rise of prefix matching here, because it follows the best "
        "head of each evaluation, on other windows."
    )
    text = (method, _order(cells), _edge_and_head(cells), _bends(results), _sequences(cells))
    return Section.of(TITLE, text, (*drawn(figures, "formation"), _table(cells)))


def _order(cells: Sequence[Cell]) -> str:
    """State how much earlier or later than prefix matching each quantity rises in the same model."""
    lags_of = []
    for quantity in ("previous_token", "k_composition", "key_edge_nats", "loss_drop_nats"):
        lags = [
            (change.tokens_seen - matching.tokens_seen) / 1e6
            for c in cells
            if (matching := change_of(c, "prefix_matching")) and (change := change_of(c, quantity))
        ]
        if lags:
            before = f"{sum(lag < 0 for lag in lags)} of {plural(len(lags), 'model')}"
            lags_of.append(f"{QUANTITIES[quantity]} earlier in {before} ({span(lags)} M tokens)")
    if not lags_of:
        return ""
    return (
        "Time of each rise relative to the rise of prefix matching in the same model (negative: earlier; range over "
        f"models): {'; '.join(lags_of)}."
    )


def _edge_and_head(cells: Sequence[Cell]) -> str:
    """State in how many models the K-composition of previous-token head and induction head rises before the attention
    of the previous-token head."""
    pairs = [(k, p) for c in cells if (k := change_of(c, "k_composition")) and (p := change_of(c, "previous_token"))]
    if not pairs:
        return ""
    first = [(k, p) for k, p in pairs if k.tokens_seen < p.tokens_seen]
    clear = sum(k.high <= p.low for k, p in first)
    text = (
        f"In {len(first)} of {plural(len(pairs), 'model')}, the K-composition of the pair reaches half of its rise "
        "before the attention of the previous-token head does"
    )
    if not first:
        return f"{text}."
    if not clear:
        return f"{text}, but no evaluation lies between the two, so the order is open."
    return (
        f"{text}; an evaluation lies between the two in {clear} of these. Where one does, formation does not follow "
        "the order of the mechanism, in which the previous-token head forms before the head that reads it: the keys "
        "already read a head that is not yet a previous-token head."
    )


def sequence(cell: Cell) -> str:
    """Name the parts of the mechanism that form, in order: "then" joins two parts if an evaluation lies between their
    rises, "together with" if none does. Empty if none forms."""
    found = sorted((c for q in MECHANISM if (c := change_of(cell, q))), key=lambda c: c.tokens_seen)
    words = [QUANTITIES[c.quantity] for c in found[:1]]
    for early, late in itertools.pairwise(found):
        words += [", then" if early.high <= late.low else " together with", f" {QUANTITIES[late.quantity]}"]
    return "".join(words)


def _sequences(cells: Sequence[Cell]) -> str:
    """State in how many models each order of formation occurs, and name the models of the less common orders."""
    counted = Counter(sequence(c) for c in cells).most_common()
    orders = []
    for i, (order, n) in enumerate(counted):
        names = "" if i == 0 else f" ({', '.join(c.name for c in cells if sequence(c) == order)})"
        orders.append(f"{order or 'nothing'} in {plural(n, 'model')}{names}")
    listed = "; ".join(orders)
    return (
        f"Order of formation (“then”: an evaluation lies between the two rises; “together with”: none does): {listed}."
    )


def _bends(results: Results) -> str:
    """State how often the fit finds a bend of the loss in models with and without a phase change; empty unless there
    are both."""

    def count(cells: Sequence[Cell]) -> tuple[int, str]:
        bends = [bend for c in cells if (bend := change_of(c, "loss_nats")) is not None]
        certain = sum(bend.low_documents is not None for bend in bends)
        at = f"at {span([bend.tokens_seen / 1e6 for bend in bends], 1)} M tokens"
        sure = f" ({at}; {certain} of them in at least 95 % of bootstrap samples)" if bends else ""
        return len(bends), f"{len(bends)} of {plural(len(cells), 'model')}{sure}"

    with_onset, without = by_onset(results)
    if not with_onset or not without:
        return ""
    (hits, true), (alarms, false) = count(with_onset), count(without)
    excess = hits * len(without) - alarms * len(with_onset)
    if excess > 0:
        verdict = "Such a bend is more frequent where prefix matching rises."
    elif excess == 0:
        verdict = "Such a bend does not distinguish the two: a negative result, and no claim uses it."
    else:
        verdict = (
            "This is a negative result: such a bend does not indicate the phase change here, and no claim uses it."
        )
    return (
        f"With a rise of prefix matching, the fit finds a bend of the loss to a steeper slope in {true}; without such "
        f"a rise, in {false}. {verdict} A falling learning rate or a change of the training text also bends the loss. "
        "The fit has one bend only: where it finds none, the loss may still fall faster for a while and then slow down "
        "again."
    )


def _table(cells: Sequence[Cell]) -> Table:
    heads = sorted({c.summary.n_heads for c in cells})
    return Table.of(
        [(n, [c for c in cells if c.summary.n_heads == n]) for n in heads],
        Column("heads per layer", lambda n, _: n),
        Column("seeds", lambda _, some: len(some)),
        *(Column(name, lambda _, some, quantity=q: _dated(some, quantity)) for q, name in QUANTITIES.items()),
        caption="Change-points in millions of tokens seen: median over seeds, and in parentheses the range over seeds "
        "and, if not all models have a change-point, the number that do (–: none). The CSV has the 95 % intervals of "
        "each model.",
        csv="changes.csv",
    )


def _dated(cells: Sequence[Cell], quantity: str) -> str:
    tokens = [change.tokens_seen / 1e6 for c in cells if (change := change_of(c, quantity))]
    if not tokens:
        return "–"
    few = f", {len(tokens)} of {len(cells)}" if len(tokens) < len(cells) else ""
    return f"{number(statistics.median(tokens))} ({span(tokens)}{few})"


def formation(results: Results) -> Figure | None:
    """Draw the change-points: a row per quantity and a mark per two-layer model, with intervals. None without any."""
    cells = [c for c in results.with_layers(2) if c.rows(ChangePointRow)]
    if not cells:
        return None
    data = stacked(cells, ChangePointRow, "n_heads", "seed").astype({"low_documents": float, "high_documents": float})
    heads = sorted(set(data["n_heads"]))
    marks = dict(zip(heads, itertools.cycle(MARKS), strict=False))

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        for at, name in enumerate(c.name for c in cells):
            part = data[data["cell"] == name]
            _marks(ax, part, (at + 0.5) / len(cells) * SHARE - SHARE / 2, marks[part["n_heads"].iloc[0]])
        counts = {q: int((data["quantity"] == q).sum()) for q in QUANTITIES}
        of = len(results.with_layers(2))
        labels = [f"{name}\n({counts[q]} of {plural(of, 'model')})" for q, name in QUANTITIES.items()]
        ax.set_yticks(range(len(labels)), labels)
        ax.set(xlabel=symbols.TOKENS_SEEN, xlim=(0, max(c.summary.tokens_seen for c in cells) / 1e6))
        ax.set_ylim(len(labels) - 0.5, -0.5)
        for h, mark in marks.items():
            ax.plot([], [], color=symbols.layer_colour(2), marker=mark, ls="", label=plural(h, "head"))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="per layer")

    caption = (
        "If the marks move to the right from one row to the next, the upper quantity forms first. Each mark is a "
        "two-layer model, in the same order in every row, at half of the quantity's rise (loss: at the fitted bend to "
        "a steeper slope over log tokens). Wide faint bars reach to the evaluations before and after a change; where "
        "those of one model overlap, the order is open. Thin lines: 95 % bootstrap intervals over documents (on "
        "random tokens, over windows). Hollow marks: in more than 5 % of the bootstrap samples there is no change. "
        "K-composition is computed from the weights and has no interval."
    )
    return picture("formation", "Order of formation", caption, data, (8.0, 1.2 + 0.9 * len(QUANTITIES)), paint)


def _marks(ax: Axes, part: pd.DataFrame, shift: float, mark: str) -> None:
    colour = symbols.layer_colour(2)
    order = list(QUANTITIES)
    for _, r in part.iterrows():
        y = order.index(r["quantity"]) + shift
        ax.plot([r["low"] / 1e6, r["high"] / 1e6], [y, y], color=colour, lw=7, alpha=0.25, solid_capstyle="butt")
        unsure = pd.isna(r["low_documents"]) and not pd.isna(r["windows"])
        if not pd.isna(r["low_documents"]):
            ax.plot([r["low_documents"] / 1e6, r["high_documents"] / 1e6], [y, y], color=colour, lw=1.6)
        ax.plot([r["tokens_seen"] / 1e6], [y], color=colour, marker=mark, ms=5, mfc="white" if unsure else colour)


THEME = Theme(
    TITLE,
    section,
    figures=(formation,),
    sources={"formation": ("changes",)},
    relies_on=("phase_change", "composition_k"),
    tables=("changes", "formation"),
)
