"""Draw the training curves of experiments/phase_change.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from scipy.special import stdtrit

from pathsum.records.results import FORMED

NAMES = {"ours": "ours", "paper_recipe": "the paper's recipe", "plain_loop": "a plain PyTorch loop"}


def band(curves: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return 200 values of x in the range that all ``curves`` (x, y) share. Also return, at these values, the mean of
    the curves and half the width of its 95 % interval (Student's t; 0 for one curve)."""
    x = np.linspace(max(c[0][0] for c in curves), min(c[0][-1] for c in curves), 200)
    y = np.array([np.interp(x, *curve) for curve in curves])
    n = len(curves)
    half = stdtrit(n - 1, 0.975) * y.std(0, ddof=1) / n**0.5 if n > 1 else np.zeros_like(x)
    return x, y.mean(0), half


def draw(points: pd.DataFrame, path: Path) -> None:
    """Draw prefix matching against tokens seen and against training time, and write the figure to ``path``.

    Thin lines are single seeds. Thick lines are the mean of each recipe, with its 95 % interval.
    """
    points = points.assign(tokens=points["tokens"] / 1e6)
    sns.set_theme(style="whitegrid")
    colors = dict(zip(NAMES, sns.color_palette(), strict=False))
    figure = Figure(figsize=(10, 3.8))
    left, right = figure.subplots(1, 2, sharey=True)
    for ax, what, label in (
        (left, "tokens", "tokens seen (millions)"),
        (right, "seconds", "training time (s)"),
    ):
        for recipe, of_recipe in points.groupby("recipe", sort=False):
            seeds = of_recipe.groupby("seed")
            curves = [(seed[what].to_numpy(), seed["prefix_matching"].to_numpy()) for _, seed in seeds]
            for curve in curves:
                ax.plot(*curve, color=colors[recipe], linewidth=0.7, alpha=0.6)
            x, mean, half = band(curves)
            low, high = (mean - half).clip(0), (mean + half).clip(max=1)
            ax.fill_between(x, low, high, color=colors[recipe], alpha=0.2, linewidth=0)
            ax.plot(x, mean, color=colors[recipe], linewidth=2, label=f"{NAMES[recipe]}, {len(curves)} seeds")
        ax.axhline(FORMED, color="black", linewidth=1, linestyle=":")
        ax.set(xscale="log", xlabel=label)
        ax.xaxis.set_major_formatter("{x:g}")
    left.set_ylabel("prefix matching of the best head (0..1)")
    figure.legend(*left.get_legend_handles_labels(), loc="upper center", ncols=len(NAMES), frameon=False)
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})
