"""Learning: the in-context loss drop and the phase change (docs/framework.md §6)."""

import itertools
import statistics
from typing import Any

import pandas as pd
import seaborn as sns
import torch
from matplotlib.figure import Figure as Canvas

from pathsum.behavior.in_context import LONG_CONTEXT, NEIGHBOURS
from pathsum.claims.formatting import layers_label
from pathsum.claims.phase_change import BEFORE
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, layer_palette, legend_of_depths, of_models, picture, row
from pathsum.report.figures.learning import phase_change
from pathsum.report.theme import DetectorText, Theme
from pathsum.report.told import Frames
from pathsum.statistics.trajectories import principal_components

TITLE = "Learning"
LEAST_BIN, WIDENING = 4, 1.12  # least number of positions per bin; ratio of the ends of successive bins
COMPONENTS = ["component_1", "component_2"]


def facts(t: Frames) -> dict[str, Any]:
    depths = {layers_label(n): t.cells[t.cells["n_layers"] == n] for n in sorted(set(t.cells["n_layers"]))}
    short = t.cells["n_ctx"].min() < LONG_CONTEXT
    return {
        "depths": depths,
        "above": t.cells["repeat_first_loss_nats"] > t.cells["repeat_guessing_nats"],
        "adapted": {n: rows for n, rows in depths.items() if short and rows["icl_loss_drop_nats"].notna().any()},
        "late": t.cells["icl_late_token"],
        "before": BEFORE,
    }


def loss_by_position(results: Results) -> Figure | None:
    """Draw the loss by position, at the last evaluation of training."""
    rows = [
        {"layers": layers_label(c.summary.n_layers), "cell": c.name, "position": centre, "loss_nats": loss}
        for c in results.cells.values()
        if c.log
        for centre, loss in _binned(c.log[-1].loss_by_position_nats)
    ]
    if not rows:
        return None
    data, palette = pd.DataFrame(rows), layer_palette(results)
    n_ctx = max(c.summary.n_ctx for c in results.cells.values())

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        for low, high in loss_drop_ends(n_ctx):
            ax.axvspan(low, high, color="#000000", alpha=0.07, lw=0)
        sns.lineplot(data, x="position", y="loss_nats", hue="layers", palette=palette, errorbar=("pi", 100), ax=ax)
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        ax.set(xlabel=symbols.POSITION, ylabel=symbols.LOSS)
        ax.legend(title="")

    caption = (
        "Held-out loss at the last evaluation of training: mean and range over models. The in-context loss drop is the "
        "mean loss in the left gray band minus that in the right one."
    )
    return picture("loss_by_position", "Loss by position in the window", caption, data, (7.4, 4.2), paint)


def loss_drop_ends(n_ctx: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the early and the late range of positions, each as (first, last), in windows of ``n_ctx`` predictions."""
    if n_ctx >= LONG_CONTEXT:
        return (50.0 - NEIGHBOURS, 50.0 + NEIGHBOURS), (500.0 - NEIGHBOURS, 500.0 + NEIGHBOURS)
    return (0.08 * n_ctx, 0.12 * n_ctx), (0.9 * n_ctx, 1.0 * n_ctx)


def _binned(losses: list[float]) -> list[tuple[float, float]]:
    edges = [0]
    while edges[-1] < len(losses):
        edges.append(min(max(edges[-1] + LEAST_BIN, int(edges[-1] * WIDENING)), len(losses)))
    return [((low + high + 1) / 2, statistics.mean(losses[low:high])) for low, high in itertools.pairwise(edges)]


def trajectories(results: Results) -> Figure | None:
    """Draw training in the plane of two principal components of losses on single tokens (docs/framework.md §6.6)."""
    t = Frames(results.cells)
    sizes = t.token_losses["losses_nats"].map(len)
    rows = t.token_losses[sizes == sizes.mode().max()]  # models of other windows have losses on other tokens
    if len(rows) <= len(COMPONENTS):
        return None
    found = principal_components(torch.tensor(rows["losses_nats"].tolist()), len(COMPONENTS))
    points = pd.DataFrame(found.coordinates.tolist(), columns=COMPONENTS, index=rows.index)
    data = rows[["cell", "n_layers", "tokens_seen"]].join(points)

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        for (name, n_layers), path in data.groupby(["cell", "n_layers"], sort=False):
            (x, y), colour = path[COMPONENTS].to_numpy().T, symbols.layer_colour(int(n_layers))
            of_models(ax.plot(x, y, color=colour, lw=1.2, alpha=0.6, marker="."), name, "both")
            ax.plot(x[:1], y[:1], color=colour, marker="o", ms=9, mfc="none")
            onset = t.cells["onset_tokens"].astype(float)[name]
            for *_, x, y in path[path["tokens_seen"] >= onset].head(1).itertuples(index=False):
                ax.plot(x, y, color=symbols.ACCENT, marker="o", zorder=3)
        ax.set(xlabel="principal component 1 (nats per token)", ylabel="principal component 2 (nats per token)")
        legend_of_depths(ax, sorted(set(data["n_layers"])), marker=".")

    shares = " and ".join(f"{100 * share:.0f} %" for share in found.explained.tolist())
    caption = (
        f"Losses on the same held-out tokens, by their first two principal components ({shares} of the variance). "
        "Circle: first checkpoint from 5 % of training on; black dot: first after the onset. A bend alone is no "
        "evidence of a transition: those of smooth curves bend too."
    )
    return picture("trajectories", "Losses on single tokens during training", caption, data, (7.4, 5.0), paint)


section = told.from_facts(TITLE, "phase_change", facts)
THEME = Theme(
    TITLE,
    section,
    (phase_change, loss_by_position, trajectories),
    {
        "headline": ("log", "summary"),
        "phase_change": ("log", "summary"),
        "loss_by_position": ("log", "summary"),
        "trajectories": ("token_losses",),
    },
    {
        "phase_change": DetectorText(
            "phase change",
            "when the loss on copies passes half of its fall for the last time; the onset of prefix matching, to "
            "within one evaluation",
        )
    },
    ("phase_change",),
    tables=("learning",),
)
