"""Effects of heads, edges and paths on the loss (docs/framework.md §5.8, §5.9). The words are in causal.md."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import signed, span
from pathsum.claims.reliability import coverage
from pathsum.records.ablations import METHODS
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, errors, picture
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, intervals, labels, listed

TITLE = "Ablation of heads, edges and paths"
ORDERS = ("direct path", "single heads", "virtual heads")
EDGE = ["cell", "kind", "early_layer", "early_head", "layer", "head"]
MOST_CELLS = 4
PANELS = {"loss": "held-out text", "second_copy": "second copy of random tokens"}
LOSSES = [f"{panel}_{part}" for panel in PANELS for part in ("nats", "low", "high")]
STYLES = {  # marker, its fill color (None: the color of its edge) and its label
    "zero": ("o", "white", "zero ablation"),
    "mean": ("s", "#b9d7ea", "mean ablation"),
    "resample": ("D", None, "resample ablation"),
    "rotated": ("x", None, "control: random rotation of the output subtracted"),
}


def facts(t: Frames) -> dict[str, Any]:
    """Return what text, tables and figure show, over the models of at least two layers. Empty without ablations."""
    rows = t.ablations[t.ablations["n_layers"] > 1].assign(name=labels)
    if rows.empty:
        return {}
    edges = rows[rows["target"] == "edge"].astype({"early_layer": int, "early_head": int})
    edges["early"] = labels(edges, "early_")
    resampled = edges[edges["method"] == "resample"]
    models = [of for _, of in resampled.groupby("cell", sort=False)]
    strongest = pd.concat([of.loc[of.groupby("kind")["second_copy_nats"].idxmax()] for of in models])
    own = t.distances[t.distances["distance"] == 0].rename(columns={"layer": "early_layer", "head": "early_head"})
    contrasts = t.edge_contrasts[t.edge_contrasts["method"] == "resample"]
    least = contrasts.loc[contrasts.groupby("cell", sort=False)["difference_nats"].idxmin()]
    previous, induction = (at.assign(name=labels).set_index("cell")["name"] for at in (t.previous, t.induction))
    return {
        "heads": rows[(rows["target"] == "head") & (rows["patterns"] == "recomputed")],
        "patterns": rows[rows["target"] == "pattern"],
        "roles": pd.DataFrame({"previous": previous, "induction": induction}).reindex(rows["cell"].unique()),
        "edges": edges,
        "strongest": strongest,
        "others": resampled.drop(index=strongest.index).groupby(["cell", "kind"])["second_copy_nats"].median(),
        "own": strongest[strongest["kind"] == "Q"].merge(own, on=EDGE[:1] + EDGE[2:4])["attention"].round(3),
        "contrasts": t.edge_contrasts,
        "least": least.assign(difference=intervals(least, "difference_nats")),
        "terms": t.terms[t.terms["layer"].isna() & (t.terms["n_layers"] > 1)],
        "windows": span(listed(rows["windows"]), 0),
    }


def by_head(found: dict[str, Any]) -> Table:
    """Return the table of the heads that are ablated, and of those that get an exact previous-token pattern."""
    resampled, roles = found["heads"][found["heads"]["method"] == "resample"], found["roles"]
    lost, exact = (rows.set_index(["cell", "name"])["second_copy_nats"] for rows in (resampled, found["patterns"]))
    previous, induction = (list(roles[role].items()) for role in ("previous", "induction"))
    others = lost.drop(previous + induction, errors="ignore")
    ranges = exact.drop(previous, errors="ignore").groupby("cell")
    shown = {
        "model": roles.index,
        "previous-token head": roles["previous"],
        "without the previous-token head (nats)": _signed(lost, previous),
        "induction head": roles["induction"],
        "without the induction head (nats)": _signed(lost, induction),
        "without another head (median, nats)": _signed(others.groupby("cell").median(), roles.index),
        "exact pattern in the previous-token head (nats)": _signed(exact, previous),
        "exact pattern in another first-layer head (nats)": ranges.agg(lambda values: span(list(values))),
    }
    caption = (
        "Rise of the loss on the second copy of repeated random tokens (nats per token, means over "
        f"{found['windows']} windows) under resample ablation or with an exact previous-token pattern."
    )
    texts = ("previous-token head", "induction head")
    return told.table(pd.DataFrame(shown, index=roles.index), caption, texts=texts, csv="ablations.csv")


def by_edge(found: dict[str, Any]) -> Table:
    """Return the table of the edge of each kind (K, Q, V) whose resample ablation raises the second-copy loss most."""
    most, edges = found["strongest"].reset_index(drop=True), found["edges"]
    by_method = {method: most[EDGE].merge(edges[edges["method"] == method], how="left") for method in METHODS}
    of_kind = zip(most["cell"], most["kind"], strict=True)
    shown = {
        "model": most["cell"],
        "edge": most["early"] + " → " + most["name"] + " (" + most["kind"] + ")",
        **{f"{method} ablation (nats)": intervals(rows, "second_copy_nats") for method, rows in by_method.items()},
        "other edges of this kind (median, nats)": _signed(found["others"], of_kind),
        "rise of the held-out loss (nats)": most["loss_nats"].map(signed),
        "change of prefix matching": most["prefix_matching"].map(signed),
    }
    caption = (
        "The edge of each kind (K, Q, V) whose resample ablation raises the loss on the second copy most, and this "
        f"rise (nats per token, 95 % intervals over {found['windows']} windows)."
    )
    return told.table(pd.DataFrame(shown), caption, texts=["edge"], csv="ablations.csv")


def by_order(found: dict[str, Any]) -> Table:
    """Return the table of the loss reduction by each order of paths."""
    rows = found["terms"]
    shown = {
        "model": rows["cell"],
        "order": [ORDERS[n] if n < len(ORDERS) else f"paths of {n} heads" for n in rows["order"]],
        "paths": rows["paths"],
        "own scale (nats)": intervals(rows, "own_scale_nats"),
        "scales frozen (nats)": intervals(rows, "added_nats"),
        "removed last (nats)": intervals(rows, "removed_nats"),
    }
    caption = (
        "Loss reduction by each order of paths (nats per token, held-out text, 95 % intervals over documents), added "
        "to the lower orders or removed last (scales frozen)."
    )
    return told.table(pd.DataFrame(shown), caption, texts=["order"], csv="terms.csv")


def _signed(values: pd.Series, at: Iterable[Any]) -> list[str]:
    """Format the entries of ``values`` at the index ``at`` with their sign; missing ones are dashes."""
    return [signed(None if pd.isna(value) else value) for value in values.reindex(list(at))]


def ablations(results: Results) -> Figure | None:
    """Draw the rise of the losses when the output of each head is replaced, for each method."""
    if not (found := facts(Frames(results.cells))):
        return None
    data = found["heads"].assign(head=found["heads"]["name"], instead=found["heads"]["method"])
    models = found["roles"].index
    shown = models[:MOST_CELLS]

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots(len(shown), len(PANELS), squeeze=False)
        for panels, cell in zip(axes, shown, strict=True):
            for ax, column in zip(panels, PANELS, strict=True):
                _panel(ax, data[data["cell"] == cell], column, found["roles"].loc[cell])
                ax.set_title(f"{cell}: {PANELS[column]}", pad=28)
        canvas.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=len(STYLES))

    caption = (
        "Rise of the loss when the output of one head is replaced. Bars: 95 % intervals, on "
        f"{found['windows']} windows of held-out text and as many of repeated random tokens. {coverage(results)} "
        f"Shown: the first {len(shown)} of {len(models)} models; the CSV has all."
    )
    columns, size = ["cell", "head", "instead", *LOSSES], (12.0, 0.6 + 2.7 * len(shown))
    return picture("ablations", "Loss when each head is ablated", caption, data[columns], size, paint)


def _panel(ax: Axes, data: pd.DataFrame, column: str, roles: pd.Series) -> None:
    heads = list(dict.fromkeys(data["head"]))
    for offset, (method, (marker, filling, label)) in enumerate(STYLES.items()):
        part = data[data["instead"] == method]
        x = [heads.index(h) + 0.18 * (offset - 1.5) for h in part["head"]]
        bars = errors(part, f"{column}_nats", f"{column}_low", f"{column}_high")
        colour = symbols.FAINT if method == "rotated" else symbols.layer_colour(int(data["n_layers"].iloc[0]))
        style: dict[str, Any] = {"fmt": marker, "color": colour, "mfc": filling or colour, "ms": 5, "lw": 1.2}
        ax.errorbar(x, part[f"{column}_nats"], yerr=bars, label=label, **style)
    for name, role in (("previous-\ntoken head", "previous"), ("induction\nhead", "induction")):
        at = heads.index(roles[role])
        ax.axvspan(at - 0.45, at + 0.45, color=symbols.ACCENT, alpha=0.07, lw=0)
        ax.annotate(name, (at, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=8.5)
    ax.axhline(0, color=symbols.FAINT, lw=0.8)
    ax.set_xticks(range(len(heads)), heads, rotation=90 if len(heads) > 10 else 0)
    ax.set(ylabel="rise of the loss under ablation\n(nats per token)")


section = told.from_facts(TITLE, "causal", facts, by_head=by_head, by_edge=by_edge, by_order=by_order)
THEME = Theme(TITLE, section, figures=(ablations,), few_windows=True, tables=("ablations", "terms"))
