"""The heads of induction, and the edges by which heads compose (docs/framework.md §4)."""

import math
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Rectangle

from pathsum.claims.formatting import layers_label, number
from pathsum.claims.reliability import reliability
from pathsum.records.composition import COMPOSITION_RULE, SIGNIFICANT
from pathsum.records.heads import COPYING
from pathsum.records.results import FORMED, Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, axes_through_zero, layer_palette, picture, row
from pathsum.report.page.document import Block, Kind, Section, Table
from pathsum.report.theme import DetectorText, Figures, Theme
from pathsum.report.told import Frames, labels

TITLE = "Two layers"
LIMITS = {"FORMED": FORMED, "COPYING": COPYING, "SIGNIFICANT": SIGNIFICANT, "RULE": COMPOSITION_RULE}
KINDS = {"Q": "queries", "K": "keys", "V": "values"}
MECHANISM = {
    "cell": "model",
    "early": "previous-token head",
    "previous_token": "attention to the previous token",
    "late": "induction head",
    "prefix_matching": "prefix matching",
    "key_edge": "K-composition − chance (chance)",
}
JUDGED = ("composes", "below", "at_floor", "above", "varying_at_floor")  # properties of an edge's record
SCORES = {"score": "value", "score without mean write": "varying", "size of the early head": "size", "chance": "chance"}
MOST_CELLS = 3
WIDEST = 7.0  # width of the strongest edge, in points
NODE = 25.0  # diameter of a head, in points
LONGEST_DISTANCE = 16
STYLES: dict[bool, dict[str, Any]] = {True: {"lw": 2.4, "alpha": 0.95}, False: {"lw": 0.9, "alpha": 0.35}}


def facts(t: Frames) -> dict[str, Any]:
    heads = t.heads.assign(name=labels(t.heads))
    if not (heads["layer"] > 0).any():
        return {}
    previous = t.previous.merge(heads)[["cell", "name", "previous_token"]].rename(columns={"name": "early"})
    induction = t.induction.merge(heads)[["cell", "name", "prefix_matching"]].rename(columns={"name": "late"})
    pairs = t.cells.index.to_frame(index=False).merge(previous, how="left").merge(induction, how="left")
    edges, corner = _edges(t), _corner(t, heads[heads["layer"] > 0])
    inside = (corner[["matching_positivity", "copying_positivity"]] > COPYING).all(axis=1)
    strong = corner["prefix_matching"] >= FORMED
    return LIMITS | {
        "heads": heads,
        "pairs": pairs,
        "formed": (pairs["prefix_matching"] >= FORMED) & pairs["previous_token"].notna(),
        "edges": edges,
        "differ": edges[edges["above"] | edges["below"]],
        "corner": corner,
        "strong": inside[strong],
        "weak": inside[~strong],
    }


def _edges(t: Frames) -> pd.DataFrame:
    """Return all edges, with what their record judges and the names of their heads."""
    fields = t.composition.drop(columns=["cell", "n_layers", "n_heads"])
    rows = t.rows("composition")
    return t.composition[["cell", *fields, "n_layers"]].assign(
        above_chance=fields["varying"] - fields["chance"],
        **{name: pd.Series([getattr(row, name) for row in rows], dtype=bool) for name in JUDGED},
        weight=fields["varying"] * fields["size"],
        early=pd.Series(labels(fields, "early_"), dtype=str),
        late=pd.Series(labels(fields, "late_"), dtype=str),
    )


def _corner(t: Frames, heads: pd.DataFrame) -> pd.DataFrame:
    """Return matching and copying of ``heads``; matching on AMF's own pair of paths where no pair was chosen."""
    found = heads.merge(t.matching.drop(columns=["n_layers", "n_heads"]), how="left", on=["cell", "layer", "head"])
    found = found.astype({"positivity": float, "qk_matching_positivity": float})
    return found.assign(
        layers=found["n_layers"].map(layers_label),
        head=found["name"],
        pair=(found["query"] + " × " + found["key"]).fillna("–"),
        matching_positivity=found["positivity"].fillna(found["qk_matching_positivity"]),
    )


def section(results: Results, figures: Figures) -> Section:
    if not (found := facts(Frames({c.name: c for c in results.of_depth(2)}))):
        return Section(TITLE, ("There is no two-layer model here.",), tuple(figures.values()))
    found |= {name: reliability(results, name) for name in ("composition", "composition_k")}
    blocks: dict[str, Block] = {**figures, "mechanism": mechanism(found), "composing": composing(found["edges"])}
    return told.section(TITLE, "two_layers", found, blocks)


def mechanism(found: dict[str, Any]) -> Table:
    keys = found["edges"][found["edges"]["kind"] == "K"]
    rows = found["pairs"].merge(keys, how="left", on=["cell", "early", "late"])
    scores = rows[["above_chance", "chance"]].map(lambda score: None if pd.isna(score) else number(score))
    shown = rows.assign(key_edge=scores["above_chance"] + " (" + scores["chance"] + ")")[[*MECHANISM]]
    caption = (
        "The heads of the mechanism, chosen on other data. K-composition: score of this pair without the early head's "
        "mean write."
    )
    kinds: dict[str, Kind] = {"previous-token head": "text", "induction head": "text"}
    return told.table(shown.rename(columns=MECHANISM), caption, kinds=kinds, source="mechanism")


def composing(edges: pd.DataFrame) -> Table:
    edges = edges[edges["composes"]].sort_values("weight", ascending=False, kind="stable")
    q_values = zip(edges["varying_q_value"], edges["varying_at_floor"], strict=True)
    shown = {
        "model": edges["cell"],
        "edge": edges["early"] + " → " + edges["late"],
        "read by": edges["kind"].map(KINDS),
        **{name: edges[column] for name, column in SCORES.items()},
        # a bound is rounded up: rounded down, it would claim too much
        "q (one-sided)": [f"≤ {number(math.ceil(round(1e3 * q, 6)) / 1e3, 3)}" if bound else number(q, 3)
                          for q, bound in q_values],
    }  # fmt: skip
    caption = (
        "Every edge that composes, by score without the early head's mean write, times the size of this head. “≤ x”: "
        "no random rotation reached the score. The CSV has all edges."
    )
    digits = dict.fromkeys(SCORES, 3)
    return told.table(pd.DataFrame(shown), caption, digits, {"edge": "text", "read by": "text"}, csv="composition.csv")


def attention_by_distance(results: Results) -> Figure | None:
    """Draw the mean attention of every head by distance, up to LONGEST_DISTANCE tokens. None without heads."""
    t = Frames(results.cells)
    if (rows := t.distances[t.distances["distance"] <= LONGEST_DISTANCE]).empty:
        return None
    group = rows["n_layers"].map(layers_label) + ": layer L" + rows["layer"].astype(str)
    data = rows.assign(group=group)[["cell", "group", "layer", "head", "distance", "attention"]]
    panels = list(data.groupby([rows["n_layers"], rows["layer"]]))
    bold = set(t.previous.itertuples(index=False, name=None))

    def paint(canvas: Canvas) -> None:
        for ax, (_, panel) in zip(row(canvas, len(panels), sharey=True), panels, strict=True):
            title = panel["group"].iloc[0]
            colour = symbols.layer_colour(int(title.split()[0]))
            for head, part in panel.groupby(["cell", "layer", "head"], sort=False):
                ax.plot(part["distance"], part["attention"], color=colour, **STYLES[head in bold])
            ax.set(xlabel=symbols.DISTANCE, ylabel=symbols.ATTENTION, ylim=(0, 1.02), xlim=(0, LONGEST_DISTANCE))
            ax.set_title(title)

    caption = "Mean attention of each head on held-out text. Bold: the previous-token head of each model."
    return picture("attention_by_distance", "Attention by distance", caption, data, (4.4 * len(panels), 3.8), paint)


def composition(results: Results) -> Figure | None:
    """Draw Q-, K- and V-composition between heads, for the best model of each number of layers and of heads."""
    t = Frames(results.cells)
    if not (found := facts(t)) or (edges := found["edges"]).empty:
        return None
    shape = ["n_layers", "n_heads"]
    best = t.cells.loc[edges["cell"].unique()].sort_values("val_loss_nats", kind="stable").drop_duplicates(shape)
    shown = best.sort_values(shape).head(MOST_CELLS)
    strongest = max(float(edges[edges["cell"].isin(shown.index)]["above_chance"].max()), 1e-9)

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots(len(shown), len(KINDS), squeeze=False)
        for panels, (name, cell) in zip(axes, shown.iterrows(), strict=True):
            for ax, kind in zip(panels, KINDS, strict=True):
                part = edges[(edges["cell"] == name) & (edges["kind"] == kind)]
                _graph(ax, part, strongest)
                _heads(ax, *(rows[rows["cell"] == name] for rows in (found["heads"], found["pairs"])))
                count = f"{kind} ({part['composes'].sum()} of {len(part)} edges)"
                ax.set_title(f"{cell['n_heads']} heads, seed {cell['seed']}: {count}")
                ax.set(xlim=(-0.6, cell["n_heads"] - 0.4), ylim=(-0.4, cell["n_layers"] - 0.6))
                ax.set_axis_off()
        canvas.legend(handles=_legend(strongest), loc="outside lower center", ncols=4, handlelength=2.6)

    caption = (
        "Heads (black: previous-token head; gray: induction head) of the model with the lowest held-out loss for each "
        "number of layers and heads. Width of an edge: composition score minus chance, without the early head's mean "
        f"write; pale: does not compose ({reliability(results, 'composition')})."
    )
    size = (12.6, 0.5 + len(shown) * (1.1 + 1.6 * (int(shown["n_layers"].max()) - 1)))
    data = edges.loc[:, :"at_floor"].drop(columns="n_layers")
    data = data.rename(columns={"below": "below_chance", "at_floor": "p_is_a_bound"})
    return picture("composition", "Composition between heads", caption, data, size, paint)


def _graph(ax: Axes, edges: pd.DataFrame, strongest: float) -> None:
    drawn = edges[edges["composes"] | (edges["above_chance"] > 0)].sort_values(["composes", "above_chance"])
    for e in drawn.to_dict("records"):  # the strongest edge last
        bend = 0.18 * (e["late_layer"] - e["early_layer"] - 1)  # around the heads of the layers between
        colour, alpha = (symbols.layer_colour(int(e["n_layers"])), 0.9) if e["composes"] else (symbols.FAINT, 0.4)
        line = FancyArrowPatch(
            (e["early_head"], e["early_layer"]), (e["late_head"], e["late_layer"]), color=colour, alpha=alpha,
            connectionstyle=f"arc3,rad={bend}", lw=max(WIDEST * e["above_chance"] / strongest, 0.4),
            arrowstyle="-", shrinkA=NODE * 0.62, shrinkB=NODE * 0.62, zorder=1 + e["composes"],
        )  # fmt: skip
        ax.add_patch(line)


def _heads(ax: Axes, heads: pd.DataFrame, pairs: pd.DataFrame) -> None:
    previous, induction = set(pairs["early"]), set(pairs[pairs["prefix_matching"] >= FORMED]["late"])
    for head, layer, name in zip(heads["head"], heads["layer"], heads["name"], strict=True):
        fill = "black" if name in previous else "#c4c4c4" if name in induction else "white"
        ink = "white" if name in previous else "black"
        ax.scatter([head], [layer], s=NODE**2, color=fill, edgecolors="black", linewidths=1.1, zorder=3)
        ax.annotate(name, (head, layer), color=ink, fontsize=7.6, ha="center", va="center", zorder=4)


def _legend(strongest: float) -> list[Line2D]:
    widths = {f"score − chance: {number(strongest)}": 1.0, number(strongest / 2): 0.5, number(strongest / 10, 3): 0.1}
    lines = [Line2D([], [], color="black", lw=WIDEST * share, label=label) for label, share in widths.items()]
    return [*lines, Line2D([], [], color=symbols.FAINT, lw=WIDEST * 0.1, label="above chance, does not compose")]


def induction_corner(results: Results) -> Figure | None:
    """Draw matching and copying positivity of every head after the first layer (docs/framework.md §5.5)."""
    if not (found := facts(Frames(results.cells))):
        return None
    columns = ["pair", "matching_positivity", "qk_matching_positivity", "copying_positivity", "prefix_matching"]
    data = found["corner"][["cell", "layers", "head", *columns]]

    def paint(canvas: Canvas) -> None:
        ax = canvas.subplots()
        ax.add_patch(Rectangle((0.5, 0.5), 0.55, 0.55, color="#000000", alpha=0.06, lw=0))
        axes_through_zero(ax)
        sns.scatterplot(
            data, x="matching_positivity", y="copying_positivity", hue="layers", palette=layer_palette(results),
            size="prefix_matching", size_norm=(0, 1), sizes=(20, 320), alpha=0.6, legend=False, ax=ax,
        )  # fmt: skip
        ax.set(xlabel=f"matching: eigenvalue positivity of\n{symbols.PAIR_CIRCUIT} (−1..1)", xlim=(-1.05, 1.05))
        ax.set(ylabel=f"copying: eigenvalue positivity of\n{symbols.OV_CIRCUIT} (−1..1)", ylim=(-1.05, 1.05))
        ax.set_box_aspect(1)
        for share in (0.0, 0.25, 0.5):
            ax.scatter([], [], s=20 + 300 * share, color=symbols.FAINT, alpha=0.6, label=f"{share:g}")
        ax.legend(title="prefix\nmatching\n(0..1)", loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=0.9)

    caption = (
        f"Heads after the first layer; shaded: both positivities exceed {COPYING}. M: product of the OV matrices along "
        "a path, to the query (q) or to the key (k)."
    )
    return picture("induction_corner", "Matching and copying by weights", caption, data, (6.6, 5.2), paint)


THEME = Theme(
    TITLE,
    section,
    (attention_by_distance, composition, induction_corner),
    {
        "attention_by_distance": ("distances", "heads"),
        "induction_corner": ("heads", "matching"),
        "mechanism": ("heads", "composition"),
    },
    {
        f"composition{suffix}": DetectorText(name, f"edges {read} that a model relies on; an edge that composes")
        for suffix, name, read in (
            ("_q", "Q-composition", "into queries"),
            ("_k", "K-composition", "into keys"),
            ("_v", "V-composition", "into values"),
            ("", "any composition", "of any kind"),
        )
    }
    | {
        "composition_all_heads": DetectorText(
            "any composition, into all heads",
            "the same, but edges into heads that the model does not need are counted, too, as absent",
        ),
    },
    ("composition_q", "composition_k", "composition_v", "composition", "previous_token", "induction"),
    tables=("composition", "distances"),
)
