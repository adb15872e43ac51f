"""Figures of the loss by logit lens and of the losses on single tokens during training."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import layers_label, span
from pathsum.figures import symbols
from pathsum.figures.base import Figure, errors, legend_of_depths, picture, row, stacked
from pathsum.records.logit_lens import LensRow
from pathsum.records.results import Cell, Results
from pathsum.records.trajectories import TokenLossRow
from pathsum.statistics.trajectories import principal_components

LAYERS_READ = "layers before the unembedding"
COMPONENTS = 2


def logit_lens(results: Results) -> Figure | None:
    """Draw the held-out loss when the residual stream is unembedded after 0, 1, … layers (docs/framework.md §3.17), one
    line per model. None if no model has layers."""
    data = stacked(results.cells.values(), LensRow, "n_layers")
    if not data["layers"].any():
        return None
    corpus = results.corpus

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        for model, loss in (("unigram", corpus.unigram_loss_nats), ("bigram", corpus.bigram_loss_nats)):
            ax.axhline(loss, color=symbols.FAINT, ls="--", lw=1.2, zorder=0)
            ax.annotate(f"{model} model", (1, loss), xycoords=("axes fraction", "data"), ha="right", va="bottom")
        for name, part in data.groupby("cell", sort=False):
            colour = symbols.layer_colour(results.cells[str(name)].summary.n_layers)
            bars = errors(part, "loss_nats")
            ax.errorbar(part["layers"], part["loss_nats"], bars, color=colour, marker="o", alpha=0.7)
        ax.set(xlabel=LAYERS_READ, ylabel=symbols.LOSS, xticks=sorted(set(data["layers"])))
        legend_of_depths(ax, dict.fromkeys(data["n_layers"]), marker="o")

    after = [
        f"with {layers_label(n)}, "
        + ", ".join(
            f"{span(list(at['loss_nats']))} after {k}" for k, at in data[data["n_layers"] == n].groupby("layers")
        )
        for n in results.layer_counts()
    ]
    caption = (
        "Held-out loss (nats per token) when the residual stream after 0, 1, … layers is unembedded through the final "
        f"norm. Ranges over models: {'; '.join(after)}. Each line is a model; bars are 95 % bootstrap intervals over "
        "documents. The losses of the unigram and the bigram model (dashed) are means over more windows. Where the "
        "loss after an early layer exceeds that of the bigram model, the stream at this layer does not yet predict "
        "well through the unembedding. It may still contain information that only later layers use."
    )
    return picture("logit_lens", "Loss by logit lens after each layer", caption, data, (6.6, 4.2), paint)


def trajectories(results: Results) -> Figure | None:
    """Draw the training of each model as a line in the plane of the first two principal components of the losses on
    single tokens (docs/framework.md §6.6). None if there are too few checkpoints or tokens."""
    data, explained = _plane(results)
    if data.empty:
        return None

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        for name, path in data.groupby("cell", sort=False):
            _path(ax, path, results.cells[str(name)])
        ax.set(xlabel="principal component 1 (nats per token)", ylabel="principal component 2 (nats per token)")
        legend_of_depths(ax, sorted(set(data["n_layers"])), marker=".")

    shares = " and ".join(f"{share:.0%}".replace("%", " %") for share in explained)
    caption = (
        "Losses on the same held-out tokens at each checkpoint from 5 % of training on (earlier if the loss is below "
        "that of the bigram model), of all models, projected onto their first two principal components "
        f"({shares} of the variance). Each line is the training of one model. The circle marks the first of these "
        "checkpoints, and the large black dot the first after the onset of induction. Where lines of different depth "
        "separate, the models begin to differ in the tokens that they predict well. A bend of a line alone is no "
        "evidence of a transition, because principal components of smooth curves bend too."
    )
    return picture("trajectories", "Losses on single tokens during training", caption, data, (7.4, 5.0), paint)


def _plane(results: Results) -> tuple[pd.DataFrame, list[float]]:
    """Return the coordinates of each checkpoint, and the share of variance of each component.

    Both are empty with at most COMPONENTS checkpoints, or with fewer tokens. Models with different n_ctx have losses on
    different tokens. Only checkpoints with the most frequent number of tokens are kept.
    """
    sizes = Counter(len(r.losses_nats) for c in results.cells.values() for r in c.rows(TokenLossRow))
    size = max(sizes, key=lambda n: sizes[n], default=0)
    rows = [
        (c.name, c.summary.n_layers, r)
        for c in results.cells.values()
        for r in c.rows(TokenLossRow)
        if len(r.losses_nats) == size
    ]
    if len(rows) <= COMPONENTS or size < COMPONENTS:
        return pd.DataFrame(), []
    found = principal_components(torch.tensor([r.losses_nats for *_, r in rows]), COMPONENTS)
    points = [(name, n, r.tokens_seen, *at) for (name, n, r), at in zip(rows, found.coordinates.tolist(), strict=True)]
    columns = ["cell", "n_layers", "tokens_seen", "component_1", "component_2"]
    return pd.DataFrame(points, columns=columns), found.explained.tolist()


def _path(ax: Axes, path: pd.DataFrame, cell: Cell) -> None:
    x, y, colour = path["component_1"], path["component_2"], symbols.layer_colour(cell.summary.n_layers)
    ax.plot(x, y, color=colour, lw=1.2, alpha=0.6, marker=".")
    ax.plot(x[:1], y[:1], color=colour, marker="o", ms=9, mfc="none")
    after = path["tokens_seen"] >= (cell.summary.onset_tokens or float("inf"))
    if after.any():
        ax.plot(x[after].iloc[:1], y[after].iloc[:1], color=symbols.ACCENT, marker="o", zorder=3)
