"""One layer: copying heads by three kinds of evidence, and skip-trigrams. The words are in one_layer.md."""

from __future__ import annotations

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import head_label, layers_label, number
from pathsum.claims.one_layer import highest_matching
from pathsum.records.heads import COPYING, SPREADS
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, axes_through_zero, picture, row
from pathsum.report.page.document import Section, Table
from pathsum.report.theme import DetectorText, Figures, Theme
from pathsum.report.themes import skip_trigrams
from pathsum.report.themes.agreement import COPIES, KINDS, evidence
from pathsum.report.told import Frames, intervals, labels

TITLE = "One layer"


def facts(results: Results) -> dict[str, Any]:
    """Return what text and tables show, with the evidence on each head as one row of ``heads``. Empty without heads."""
    groups = {f"grid, {layers_label(n)}": results.with_layers(n) for n in results.layer_counts()}
    groups |= {f"control, {name}": [cell] for name, cell in results.controls.items()}
    group = {cell.name: name for name, cells in groups.items() for cell in cells}
    t = Frames({cell.name: cell for cells in groups.values() for cell in cells})
    if t.heads.empty:
        return {}
    heads, models = evidence(t), results.with_layers(1)
    heads = heads[heads["question"] == COPIES].rename(columns={f"{kind}_says": kind for kind in KINDS})
    heads = heads.merge(t.heads.assign(name=labels(t.heads), top1=t.heads["copying_top1"])[["cell", "name", "top1"]])
    heads = heads.assign(models=heads["cell"].map(group), positivity=heads["weights_value"])
    one = heads[heads["models"] == f"grid, {layers_label(1)}"]
    return {
        "heads": heads,
        "one": one,
        "copying_heads": one[one["weights"]],
        "other_heads": one[~one["weights"]],
        "matching": highest_matching(models),
        "threshold": COPYING,
        "spreads": SPREADS,
        "controls": results.controls,
        **skip_trigrams.facts(models),
    }


def section(results: Results, figures: Figures) -> Section:
    """Show skip-trigrams and copying heads."""
    if not (found := facts(results)):
        return told.absent(TITLE)
    tables = {"copying_heads": table(found["heads"]), "copying": on_text(Frames(results.cells))}
    return told.section(TITLE, "one_layer", found, {**figures, **tables, **skip_trigrams.tables(found)})


def table(heads: pd.DataFrame) -> Table:
    """Return the number of heads that copy by each kind of evidence, of those measured, by group of models."""
    heads = heads.assign(three=heads[[*KINDS]].dropna().all(axis=1))
    columns = {KINDS[kind]: kind for kind in KINDS} | {"all three": "three"}
    shown = [
        {"models": models}
        | {name: f"{int(rows[kind].sum())} of {rows[kind].count()}" for name, kind in columns.items()}
        | {"OV positivity (median over heads)": rows["positivity"].median()}
        for models, rows in heads.groupby("models", sort=False)
    ]
    caption = (
        "Number of heads that copy by each kind of evidence, of those measured (grid: the models of the report; "
        "control: see the section “Controls”)."
    )
    return told.table(pd.DataFrame(shown), caption, kinds={"models": "text"}, csv="heads.csv", source="copying_heads")


def on_text(t: Frames) -> Table:
    """Return how much each head of one-layer models raises the tokens that it attends to on text."""
    rows = t.copying[t.copying["n_layers"] == 1].merge(t.heads)
    shown = {
        "model": rows["cell"],
        "head": labels(rows),
        "OV positivity": rows["copying_positivity"],
        "attended − another window (nats)": intervals(rows, "attended_nats", "attended_low", "attended_high"),
        "must exceed": SPREADS * rows["spread_nats"],
        "loss without own OV entries (nats)": rows["removal_nats"],
    }
    caption = (
        "Attended: logit that the head's output gives to the tokens that it attends to, weighted by attention, minus "
        "that of another window's (95 % intervals over documents). Loss: its rise if each attended token loses what "
        "the head's OV entry (token, token) adds to its logit."
    )
    return told.table(pd.DataFrame(shown), caption, {"loss without own OV entries (nats)": 3}, csv="copying.csv")


def eigenvalues(results: Results) -> Figure | None:
    """Draw the OV eigenvalue positivity of every head, and the OV eigenvalues of the head with the highest positivity
    for each number of layers (docs/framework.md §3.5). None without heads."""
    t = Frames(results.cells)
    heads = t.heads.sort_values("copying_positivity", ascending=False, kind="stable")
    if heads.empty:
        return None
    planes = list(t.eigenvalues.merge(heads.drop_duplicates("n_layers")).groupby("n_layers"))
    data = pd.DataFrame(
        {
            "cell": heads["cell"],
            "layers": heads["n_layers"],
            "group": heads["n_layers"].map(layers_label) + ": L" + heads["layer"].astype(str),
            "head": labels(heads),
            "positivity": heads["copying_positivity"],
        }
    ).sort_values(["layers", "group", "cell", "head"], kind="stable", ignore_index=True)

    def paint(canvas: Canvas) -> None:
        first, *others = row(canvas, 1 + len(planes))
        _positivity(first, data)
        for ax, (_, values) in zip(others, planes, strict=True):
            _plane(ax, values)

    caption = (
        f"Left: eigenvalue positivity of the OV circuit of each head; dashed: our threshold, {COPYING}. Right: OV "
        "eigenvalues, in the complex plane and relative to the largest, of the head with the highest positivity for "
        "each number of layers."
    )
    size = (4.4 * (1 + len(planes)), 4.0)
    return picture("eigenvalues", "Copying heads by their OV eigenvalues", caption, data, size, paint)


def _positivity(ax: Axes, data: pd.DataFrame) -> None:
    groups = list(dict.fromkeys(data["group"]))
    colours = {g: symbols.layer_colour(int(g.split()[0])) for g in groups}
    sns.stripplot(
        data, x="positivity", y="group", hue="group", palette=colours, jitter=False, alpha=0.45, size=8, ax=ax
    )
    ax.axvline(COPYING, color=symbols.FAINT, ls="--", lw=1.2, zorder=0)
    ax.set(xlim=(-1.05, 1.05), ylabel="", xlabel=f"OV eigenvalue positivity {symbols.POSITIVITY} (−1..1)")
    ax.set_title("all heads")


def _plane(ax: Axes, values: pd.DataFrame) -> None:
    head = values.iloc[0]
    scale = max(float((values["real"] ** 2 + values["imag"] ** 2).max() ** 0.5), 1e-30)
    axes_through_zero(ax)
    colour = symbols.layer_colour(int(head["n_layers"]))
    sns.scatterplot(x=values["real"] / scale, y=values["imag"] / scale, color=colour, s=45, alpha=0.75, ax=ax)
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xlabel="Re λ / max |λ|", ylabel="Im λ / max |λ|")
    ax.set_box_aspect(1)
    label = head_label(int(head["layer"]), int(head["head"]))
    ax.set_title(f"{head['cell']}, head {label}:\npositivity {number(head['copying_positivity'])}")


THEME = Theme(
    TITLE,
    section,
    (eigenvalues,),
    {"eigenvalues": ("eigenvalues", "heads"), "copying_heads": ("heads", "copying", "ablations")},
    {
        "skip_trigram": DetectorText(
            "skip-trigrams, by model and text",
            "source … destination → out; entries of the atlas that the text confirms",
        ),
        "skip_trigram_model": DetectorText(
            "skip-trigrams, by the model alone",
            "the same; triples whose source raises the log-probability of the output through a head by at least half a "
            "nat, on documents that were not used to choose them, whether or not the text confirms them",
        ),
    },
    ("skip_trigram", "skip_trigram_model", "copying"),
    tables=("skip_trigrams", "skip_trigram_bugs", "eigenvalues", "copying"),
)
