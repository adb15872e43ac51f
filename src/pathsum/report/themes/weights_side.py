"""Token clusters, joint copying, subspaces, deletion and virtual heads. The words are in weights_side.md."""

from __future__ import annotations

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import head_label, number
from pathsum.records.results import FORMED, Results
from pathsum.records.tokens import JOINER
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, axes_through_zero, picture, row, side_by_side
from pathsum.report.page.document import Entry, Kind, Section, Table
from pathsum.report.theme import Figures, Theme
from pathsum.report.told import Frames, labels, listed

TITLE = "Inside the heads"
BEYOND = 3  # standard deviations from which a value counts as beyond chance
CLUSTERS, DIRECTIONS, VIRTUAL = 4, 2, 3  # shown per model
TOKENS = 6  # shown of each group
LITTLE = 0.01  # share of the tokens below which a group of heads hardly copies
FIXED = 0.1  # mean attention at one distance from which a virtual head counts as attending at that distance
ITSELF = Entry("the same")  # what a head writes for the tokens of a cluster
ATTENDS = "attends (tokens back: mean attention)"
KINDS = {"Q": "queries (Q)", "K": "keys (K)", "V": "values (V)"}


def facts(t: Frames) -> dict[str, Any]:
    """Return what text, tables and figure show, over the models with heads. Empty without heads."""
    if t.heads.empty:
        return {}
    heads = t.heads.merge(t.induction)
    heads = heads[heads["prefix_matching"] >= FORMED]
    formed, previous = (dict(zip(some["cell"], labels(some), strict=True)) for some in (heads, t.previous))
    off = (t.token_clusters["cohesion"] - t.token_clusters["chance"]) / t.token_clusters["spread"]
    groups = _largest(t.joint_copying, "top1")
    places = groups[["layer", "heads"]].to_numpy()
    names = [" and ".join(head_label(layer, int(head)) for head in heads.split()) for layer, heads in places]
    more = groups["top1"] > groups["best_top1"]
    ranks = t.bandwidth[t.bandwidth["n_layers"] == t.heads["n_layers"].max()]
    overlaps, virtual = (
        rows.assign(early=labels(rows, "early_"), late=labels(rows, "late_")) for rows in (t.overlaps, t.virtual_heads)
    )
    ends = overlaps[["cell", "early", "late"]].to_numpy()
    edge = [(early, late) == (previous.get(cell), formed.get(cell)) for cell, early, late in ends]
    overlaps = overlaps.assign(above=overlaps["share"] - overlaps["chance"], induction=pd.Series(edge, dtype=bool))
    tops = _largest(virtual, "cost_nats").drop_duplicates("cell")
    deleting = t.deleting[t.deleting["spread"] > 0]
    return {
        "BEYOND": BEYOND,
        "clusters": t.token_clusters.assign(beyond=off.where(t.token_clusters["spread"] > 0, 0.0)),
        "groups": groups.assign(labels=names),
        "more": more,
        "little": (groups[more]["top1"] < LITTLE).sum(),
        "others": listed(groups["chance_top1"].head(1)),
        "d_model": t.cells["d_model"].loc[ranks["cell"].unique()],
        "ranks": {part: rows["effective_rank"] for part, rows in ranks.groupby("part")},
        "summed": ranks[ranks["part"] == "W_OV"].groupby("cell")["effective_rank"].sum(),
        "overlaps": overlaps,
        "edges": overlaps[overlaps["spread"] > 0],
        "keys": overlaps[overlaps["induction"] & (overlaps["kind"] == "K")],
        "deleting": deleting,
        "removed": max([0.0, *deleting["removed"]]),
        "virtual": virtual,
        "tops": tops,
        "ends": pd.Series([head == formed[cell] for cell, head in tops[["cell", "late"]].to_numpy() if cell in formed]),
    }


def section(results: Results, figures: Figures) -> Section:
    """Describe the structure of heads by their weights, and the effect on the loss of removing virtual heads."""
    t = Frames(results.cells)
    if not (found := facts(t)):
        return told.absent(TITLE)
    tables = {"token_clusters": _token_table(t, found["clusters"]), "virtual_heads": _virtual_table(found["virtual"])}
    return told.section(TITLE, "weights_side", found, {**figures, **tables})


def _token_table(t: Frames, clusters: pd.DataFrame) -> Table:
    best = t.cells[t.cells.index.isin(t.heads["cell"])].groupby("n_layers")["val_loss_nats"].idxmin()
    clusters = _largest(clusters, "beyond").groupby("cell").head(CLUSTERS)
    found = clusters[["cohesion", "chance", "spread"]].to_numpy()
    cohesion = [f"{number(value)} ({number(chance)} ± {number(spread)})" for value, chance, spread in found]
    leading = _largest(t.directions[t.directions["rank"] == 1], "share").groupby("cell").head(DIRECTIONS)
    rows = pd.concat([clusters.assign(read=clusters["tokens"], cohesion=cohesion), leading], ignore_index=True)
    rows = rows[rows["cell"].isin(best)].sort_values("n_layers", kind="stable")
    shown = {
        "model": rows["cell"],
        "head": labels(rows),
        "tokens": rows["read"].map(_tokens),
        "→ written": [ITSELF if pd.isna(joined) else _tokens(joined) for joined in rows["written"]],
        "cohesion (chance)": rows["cohesion"],
        "share of W_OV": rows["share"],
    }
    caption = (
        "Tokens on which heads act, for the model of each depth with the lowest held-out loss: the clusters that most "
        "clearly raise each other's logits (chance: writes randomly rotated, mean ± standard deviation), and the "
        "singular directions of W_OV with the largest share of ‖W_OV‖², as tokens read → tokens written (of each, at "
        f"most {TOKENS} tokens)."
    )
    kinds: dict[str, Kind] = {"tokens": "token", "→ written": "token"}
    return told.table(pd.DataFrame(shown), caption, kinds=kinds, csv="token_clusters.csv")


def _virtual_table(virtual: pd.DataFrame) -> Table:
    most = _largest(virtual, "cost_nats").groupby("cell").head(VIRTUAL).sort_values("cell", kind="stable")
    shown = [
        {
            "model": v["cell"],
            "early → late": f"{v['early']} → {v['late']}",
            "rise of the loss (nats)": f"{number(v['cost_nats'], 3)} ± {number(v['cost_error_nats'], 3)}",
            "V-composition (chance)": f"{number(v['composition'])} ({number(v['composition_chance'])})",
            "copying positivity": v["positivity"],
            ATTENDS: _attends(v["peak_distance"], v["peak_attention"]),
            "prefix matching": v["prefix_matching"],
        }
        for v in most.to_dict("records")
    ]
    caption = (
        f"The {VIRTUAL} virtual heads of each model whose removal raises the held-out loss most (± standard error over "
        "documents), with the eigenvalue positivity of the OV circuit and the mean attention of A^late A^early: at its "
        f"strongest distance, if it is ≥ {FIXED} there, and to the token after an earlier occurrence (prefix matching "
        "on repeated random tokens)."
    )
    kinds: dict[str, Kind] = {"early → late": "text", ATTENDS: "text"}
    return told.table(pd.DataFrame(shown), caption, kinds=kinds, csv="virtual_heads.csv")


def _attends(distance: int, attention: float) -> str:
    return f"{distance} back: {number(attention)}" if attention >= FIXED else "no fixed distance"


def _largest(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    return rows.sort_values(value, ascending=False, kind="stable")


def _tokens(joined: str) -> str:
    return " ".join(symbols.visible(token, 24) for token in joined.split(JOINER)[:TOKENS])


def subspaces(results: Results) -> Figure | None:
    """Draw the overlap of each early head's write with the subspace that each late head reads (docs/framework.md
    §3.15), and deletion by late heads (§3.16). None without pairs of heads."""
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
        f"Left: overlap of {len(data) // 3} pairs of heads, by what the later head reads; large dots: the "
        "previous-token head and the induction head of each model; line and band: mean ± 2 standard deviations (median "
        "over pairs) under random rotations. Right: a head that deleted all writes of earlier layers would lie at "
        "(−1, 1); band: ± 2 standard deviations of the alignment (median over heads) under random rotations."
    )
    return picture("subspaces", "Overlap of reads and writes, and deletion", caption, data, (10.4, 4.2), paint)


def _overlaps(ax: Axes, data: pd.DataFrame) -> None:
    band = 2 * float(data["spread"].median())
    ax.axhspan(1 - band, 1 + band, color=symbols.FAINT, alpha=0.25, lw=0)
    ax.axhline(1, color=symbols.FAINT, ls="--", lw=1.2)
    colours = data["n_layers"].map(symbols.layer_colour).where(~data["induction"], symbols.ACCENT)
    sizes = data["induction"].map({True: 70, False: 18})
    x = side_by_side(data["kind"], list(KINDS), 0.7)
    ax.scatter(x, data["times_chance"], c=colours, s=sizes, alpha=0.7, linewidths=0)
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


THEME = Theme(
    TITLE,
    section,
    figures=(subspaces,),
    sources={"subspaces": ("overlaps", "deleting"), "token_clusters": ("token_clusters", "directions")},
    tables=("token_clusters", "directions", "joint_copying", "bandwidth", "overlaps", "deleting", "virtual_heads"),
)
