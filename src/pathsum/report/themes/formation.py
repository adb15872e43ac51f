"""The order in which the parts of induction form (docs/framework.md §6.5). The words are in formation.md."""

import itertools
from collections import Counter
from dataclasses import fields
from statistics import median
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import number, plural, span
from pathsum.records.formation import ChangePointRow
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, of_models, picture, row
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, listed

TITLE = "Order of formation"
MECHANISM = ["previous_token", "key_edge_nats", "prefix_matching"]
QUANTITIES = {  # in the order in which the mechanism would form
    "previous_token": "previous-token head",
    "k_composition": "K-composition",
    "key_edge_nats": "key edge",
    "prefix_matching": "prefix matching",
    "loss_drop_nats": "in-context loss drop",
    "loss_nats": "fitted bend of the loss",
}
LAGS = ("previous_token", "k_composition", "key_edge_nats", "loss_drop_nats")  # behind prefix matching
MARKS = "osD^v"  # markers, one for each number of heads per layer
SHARE = 0.7  # share of a row's height over which its models are spread


def facts(t: Frames) -> dict[str, Any]:
    """Return what text, table and figure show, over the two-layer models that change. Empty without such models."""
    every = t.changes.assign(millions=t.changes["tokens_seen"] / 1e6, seed=t.changes["cell"].map(t.cells["seed"]))
    changes = every[every["n_layers"] > 1].astype({"low_documents": float, "high_documents": float})
    if changes.empty:
        return {}
    tokens = changes.pivot(index=["n_heads", "cell"], columns="quantity", values="tokens_seen")
    tokens = tokens.reindex(columns=list(QUANTITIES))
    lags = {QUANTITIES[q]: (tokens[q] - tokens["prefix_matching"]).dropna() / 1e6 for q in LAGS}
    edge, head = (changes[changes["quantity"] == q] for q in ("k_composition", "previous_token"))
    pairs = edge.merge(head, on="cell", suffixes=("", "_of_head"))
    edge_first = pairs["tokens_seen"] < pairs["tokens_seen_of_head"]
    orders = pd.Series({name: sequence(rows) for name, rows in changes.groupby("cell", sort=False)})
    bends = every[every["quantity"] == "loss_nats"].set_index("cell").reindex(t.formation["cell"].unique())
    formed = bends.index.isin(every.loc[every["quantity"] == "prefix_matching", "cell"])
    return {
        "changes": changes,
        "tokens": tokens,
        "lags": {name: lag for name, lag in lags.items() if len(lag)},
        "edge_first": edge_first,
        "clear": int((edge_first & (pairs["high"] <= pairs["low_of_head"])).sum()),
        "orders": [(order, list(orders.index[orders == order])) for order, _ in Counter(orders).most_common()],
        "bends": (bends[formed], bends[~formed]),
    }


def sequence(changes: pd.DataFrame) -> str:
    """Name the parts of the mechanism that form in one model, in order: "then" joins two parts if an evaluation lies
    between their rises, "together with" if none does."""
    found = changes.set_index("quantity").reindex(MECHANISM).dropna(subset=["tokens_seen"])
    found = found.sort_values("tokens_seen", kind="stable")
    joints = [", then " if apart else " together with " for apart in found["high"].shift() <= found["low"]]
    names = [QUANTITIES[q] for q in found.index]
    return "".join(itertools.chain(*zip(joints, names, strict=True))).removeprefix(" together with ")


def table(found: dict[str, Any]) -> Table:
    shown = [
        {"heads per layer": heads, "seeds": len(rows)} | {name: _dated(rows[q]) for q, name in QUANTITIES.items()}
        for heads, rows in found["tokens"].groupby("n_heads")
    ]
    caption = "Change-points in millions of tokens seen: median over seeds (range, and how many have one if not all)."
    return told.table(pd.DataFrame(shown), caption, csv="changes.csv")


def _dated(tokens: pd.Series) -> str:
    known = listed(tokens / 1e6)
    few = f", {len(known)} of {len(tokens)}" if len(known) < len(tokens) else ""
    return f"{number(median(known))} ({span(known)}{few})" if known else "–"


def formation(results: Results) -> Figure | None:
    """Draw the change-points: a row per quantity and a mark per two-layer model, with intervals."""
    t = Frames(results.cells)
    if not (found := facts(t)):
        return None
    data = found["changes"][["cell", "n_heads", "seed", *(field.name for field in fields(ChangePointRow))]]
    marks = dict(zip(sorted(set(data["n_heads"])), itertools.cycle(MARKS), strict=False))
    counts, of = data["quantity"].value_counts(), plural(len(results.of_depth(2)), "model")

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        for at, (_, part) in enumerate(data.groupby("cell", sort=False)):
            _marks(ax, part, (at + 0.5) / len(found["tokens"]) * SHARE - SHARE / 2, marks[part["n_heads"].iloc[0]])
        labels = [f"{name}\n({counts.get(q, 0)} of {of})" for q, name in QUANTITIES.items()]
        ax.set_yticks(range(len(labels)), labels)
        ax.set(xlabel=symbols.TOKENS_SEEN, xlim=(0, t.cells.loc[data["cell"], "tokens_seen"].max() / 1e6))
        ax.set_ylim(len(labels) - 0.5, -0.5)
        for h, mark in marks.items():
            ax.plot([], [], color=symbols.layer_colour(2), marker=mark, ls="", label=plural(h, "head"))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="per layer")

    caption = (
        "A mark per two-layer model; faint bars: evaluations before and after; thin lines: 95 % intervals over "
        "documents or windows. Hollow: no change in more than 5 % of the bootstrap samples."
    )
    return picture("formation", "Order of formation", caption, data, (8.0, 1.2 + 0.9 * len(QUANTITIES)), paint)


def _marks(ax: Axes, part: pd.DataFrame, shift: float, mark: str) -> None:
    colour, order = symbols.layer_colour(2), list(QUANTITIES)
    for _, r in part.iterrows():
        y = order.index(r["quantity"]) + shift
        ax.plot([r["low"] / 1e6, r["high"] / 1e6], [y, y], color=colour, lw=7, alpha=0.25, solid_capstyle="butt")
        unsure = pd.isna(r["low_documents"]) and not pd.isna(r["windows"])
        if not pd.isna(r["low_documents"]):
            ax.plot([r["low_documents"] / 1e6, r["high_documents"] / 1e6], [y, y], color=colour, lw=1.6)
        face = "white" if unsure else colour
        drawn = ax.plot([r["tokens_seen"] / 1e6], [y], color=colour, marker=mark, ms=5, mfc=face)
        of_models(drawn, r["cell"], "x")


section = told.from_facts(TITLE, "formation", facts, changes=table)
THEME = Theme(
    TITLE,
    section,
    figures=(formation,),
    sources={"formation": ("changes",)},
    relies_on=("phase_change", "composition_k"),
    tables=("changes", "formation"),
)
