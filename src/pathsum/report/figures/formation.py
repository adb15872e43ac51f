"""What forms when: the change-points of training, model by model."""

from __future__ import annotations

import dataclasses
import itertools

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import plural
from pathsum.records.formation import ChangePointRow
from pathsum.records.results import Results
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, picture, row

QUANTITIES = {  # in the order in which a mechanism would form
    "previous_token": "previous-token head",
    "k_composition": "K-composition",
    "key_edge_nats": "key edge",
    "prefix_matching": "prefix matching",
    "loss_drop_nats": "in-context loss drop",
    "loss_nats": "bend of the loss",
}
MARKS = "osD^v"  # by heads per layer
SHARE = 0.7  # of a row's height that its models stand in


def formation(results: Results) -> Figure | None:
    """A row per quantity, a mark per two-layer model, with neighbouring evaluations and the interval over windows."""
    cells = [c for c in results.with_layers(2) if c.rows(ChangePointRow)]
    fields = [f.name for f in dataclasses.fields(ChangePointRow)]
    rows = [
        (c.name, c.summary.n_heads, c.summary.seed, *dataclasses.astuple(r))
        for c in cells
        for r in c.rows(ChangePointRow)
    ]
    if not rows:
        return None
    data = pd.DataFrame(rows, columns=["cell", "n_heads", "seed", *fields])
    data = data.astype({"low_documents": float, "high_documents": float})
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
        "Where marks move to the right from one row to the next, the upper quantity forms first. Each mark is a "
        "two-layer model, in the same order in every row: half of a quantity's rise, and for the loss the bend to a "
        "steeper slope over log tokens. Faint bars reach to the evaluations on either side: where they overlap, the "
        "order is open. Lines are 95 % intervals over windows; hollow marks depend on which windows are sampled. "
        "Composition is of the weights and has no windows."
    )
    return picture("formation", "What forms when", caption, data, (8.0, 1.2 + 0.9 * len(QUANTITIES)), paint)


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
