"""Token clusters, joint copying, subspaces, deletion and virtual heads."""

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import number
from pathsum.records.results import FORMED, Results
from pathsum.records.tokens import JOINER
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, axes_through_zero, of_models, picture, row, side_by_side
from pathsum.report.page.document import Entry, Kind, Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, labels

TITLE = "Inside the heads"
BEYOND = 3  # standard deviations from which a value counts as beyond chance
CLUSTERS, DIRECTIONS, VIRTUAL = 4, 2, 3  # shown per model
TOKENS = 6  # shown of each group
FIXED = 0.1  # mean attention at one distance from which a virtual head counts as attending at that distance
ITSELF = Entry("the same")  # what a head writes for the tokens of a cluster
ATTENDS = "attends (tokens back: mean attention)"
KINDS = {"Q": "queries (Q)", "K": "keys (K)", "V": "values (V)"}


def facts(t: Frames) -> dict[str, Any]:
    if t.heads.empty:
        return {}
    heads = t.induction.merge(t.heads)
    heads = heads[heads["prefix_matching"] >= FORMED]
    formed, previous = (dict(zip(some["cell"], labels(some), strict=True)) for some in (heads, t.previous))
    off = (t.token_clusters["cohesion"] - t.token_clusters["chance"]) / t.token_clusters["spread"]
    groups = _largest(t.joint_copying, "top1")
    ranks = t.bandwidth[t.bandwidth["n_layers"] == t.heads["n_layers"].max()]
    overlaps, virtual = (
        rows.assign(**{end: pd.Series(labels(rows, f"{end}_"), dtype=str) for end in ("early", "late")})
        for rows in (t.overlaps, t.virtual_heads)
    )
    cells = overlaps["cell"]
    edge = (overlaps["early"] == cells.map(previous)) & (overlaps["late"] == cells.map(formed))
    overlaps = overlaps.assign(above=overlaps["share"] - overlaps["chance"], induction=edge)
    tops = _largest(virtual, "cost_nats").drop_duplicates("cell")
    having = tops[tops["cell"].isin(formed)]
    deleting = t.deleting[t.deleting["spread"] > 0]
    return {
        "BEYOND": BEYOND,
        "best": t.cells[t.cells.index.isin(t.heads["cell"])].groupby("n_layers")["val_loss_nats"].idxmin(),
        "directions": t.directions[t.directions["rank"] == 1],
        "clusters": t.token_clusters.assign(beyond=off.where(t.token_clusters["spread"] > 0, 0.0)),
        "groups": groups,
        "d_model": t.cells["d_model"].loc[ranks["cell"].unique()],
        "ranks": {part: rows["effective_rank"] for part, rows in ranks.groupby("part")},
        "summed": ranks[ranks["part"] == "W_OV"].groupby("cell")["effective_rank"].sum(),
        "overlaps": overlaps,
        "edges": overlaps[overlaps["spread"] > 0],
        "keys": overlaps[edge & (overlaps["kind"] == "K")],
        "deleting": deleting,
        "removed": max([0.0, *deleting["removed"]]),
        "virtual": virtual,
        "tops": tops,
        "ends": having["late"] == having["cell"].map(formed),
    }


def _token_table(found: dict[str, Any]) -> Table:
    clusters = _largest(found["clusters"], "beyond").groupby("cell").head(CLUSTERS)
    texts = clusters[["cohesion", "chance", "spread"]].map(number)
    cohesion = texts["cohesion"] + " (" + texts["chance"] + " ± " + texts["spread"] + ")"
    leading = _largest(found["directions"], "share").groupby("cell").head(DIRECTIONS)
    rows = pd.concat([clusters.assign(read=clusters["tokens"], cohesion=cohesion), leading], ignore_index=True)
    rows = rows[rows["cell"].isin(found["best"])].sort_values("n_layers", kind="stable")
    shown = {
        "model": rows["cell"],
        "head": labels(rows),
        "tokens": rows["read"].map(_tokens),
        "→ written": [ITSELF if pd.isna(joined) else _tokens(joined) for joined in rows["written"]],
        "cohesion (chance)": rows["cohesion"],
        "share of W_OV": rows["share"],
    }
    caption = (
        "Clusters of tokens that most clearly raise each other's logits, and the leading singular directions of W_OV "
        "(share of ‖W_OV‖²), for the model of each depth with the lowest held-out loss. Chance: randomly rotated "
        "writes (mean ± standard deviation)."
    )
    kinds: dict[str, Kind] = {"tokens": "token", "→ written": "token"}
    return told.table(pd.DataFrame(shown), caption, kinds=kinds, csv="token_clusters.csv")


def _virtual_table(found: dict[str, Any]) -> Table:
    most = _largest(found["virtual"], "cost_nats").groupby("cell").head(VIRTUAL).sort_values("cell", kind="stable")
    costs = most[["cost_nats", "cost_error_nats"]].map(number, digits=3)
    scores = most[["composition", "composition_chance", "peak_attention"]].map(number)
    back = most["peak_distance"].astype(str) + " back: " + scores["peak_attention"]
    shown = {
        "model": most["cell"],
        "early → late": most["early"] + " → " + most["late"],
        "rise of the loss (nats)": costs["cost_nats"] + " ± " + costs["cost_error_nats"],
        "V-composition (chance)": scores["composition"] + " (" + scores["composition_chance"] + ")",
        "copying positivity": most["positivity"],
        ATTENDS: back.where(most["peak_attention"] >= FIXED, "no fixed distance"),
        "prefix matching": most["prefix_matching"],
    }
    caption = (
        f"The {VIRTUAL} virtual heads of each model whose removal raises the held-out loss most (± standard error over "
        "documents)."
    )
    return told.table(pd.DataFrame(shown), caption, texts=["early → late", ATTENDS], csv="virtual_heads.csv")


def _largest(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    return rows.sort_values(value, ascending=False, kind="stable")


def _tokens(joined: str) -> str:
    return " ".join(symbols.visible(token, 24) for token in joined.split(JOINER)[:TOKENS])


def subspaces(results: Results) -> Figure | None:
    """Draw the overlap of writes and reads, and deletion by late heads (docs/framework.md §3.15, §3.16)."""
    found = facts(Frames(results.cells))
    if not found or found["overlaps"].empty:
        return None
    data = found["overlaps"][found["overlaps"]["chance"] > 0]
    data = data.assign(times_chance=data["share"] / data["chance"], spread=data["spread"] / data["chance"])
    data = data[["cell", "n_layers", "kind", "early", "late", "times_chance", "spread", "induction"]]

    def paint(canvas: Canvas) -> None:
        left, right = row(canvas, 2)
        _overlaps(left, data)
        _deleting(right, found["deleting"])

    caption = (
        f"Left: {len(data) // 3} pairs of heads; large dots: previous-token head and induction head. Right: a head "
        "that deleted all earlier writes would lie at (−1, 1). Bands: ± 2 standard deviations under random rotations."
    )
    return picture("subspaces", "Overlap of reads and writes, and deletion", caption, data, (10.4, 4.2), paint)


def _overlaps(ax: Axes, data: pd.DataFrame) -> None:
    band = 2 * float(data["spread"].median())
    ax.axhspan(1 - band, 1 + band, color=symbols.FAINT, alpha=0.25, lw=0)
    ax.axhline(1, color=symbols.FAINT, ls="--", lw=1.2)
    colours = data["n_layers"].map(symbols.layer_colour).where(~data["induction"], symbols.ACCENT)
    dots = data.assign(x=side_by_side(data["kind"], list(KINDS), 0.7), colour=colours)
    for size, part in ((18, dots[~data["induction"]]), (70, dots[data["induction"]])):
        drawn = ax.scatter(part["x"], part["times_chance"], c=part["colour"], s=size, alpha=0.7, linewidths=0)
        of_models([drawn], part["cell"])
    ax.set_xticks(range(len(KINDS)), list(KINDS.values()))
    ax.set(ylabel="overlap of an earlier head's write with\na later head's read (multiples of chance)", ylim=(0, None))
    ax.set(xlabel="reader of the later head", title="all pairs of heads")


def _deleting(ax: Axes, data: pd.DataFrame) -> None:
    band = 2 * float(data["spread"].median())
    ax.axvspan(-band, band, color=symbols.FAINT, alpha=0.25, lw=0)
    palette = {n: symbols.layer_colour(int(n)) for n in set(data["n_layers"])}
    dots = {"hue": "n_layers", "palette": palette, "s": 45, "alpha": 0.75, "legend": False}
    sns.scatterplot(data, x="alignment", y="removed", ax=ax, **dots)
    axes_through_zero(ax)
    reach = max(0.3, 1.1 * float(data[["alignment", "removed"]].abs().max().max()))
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), title=f"{len(data)} heads after the first layer")
    ax.set(xlabel="alignment with earlier writes (−1..1)", ylabel="share of earlier writes removed (1: all)")


section = told.from_facts(TITLE, "weights_side", facts, token_clusters=_token_table, virtual_heads=_virtual_table)
THEME = Theme(
    TITLE,
    section,
    figures=(subspaces,),
    sources={"subspaces": ("overlaps", "deleting"), "token_clusters": ("token_clusters", "directions")},
    tables=("token_clusters", "directions", "joint_copying", "bandwidth", "overlaps", "deleting", "virtual_heads"),
)
