"""The curves of experiments/phase_change.py as a table and a figure."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import stdtrit

from pathsum.records.results import FORMED

HERE = Path(__file__).parent
NAMES = {"ours": "ours", "paper_recipe": "the paper's recipe", "plain_loop": "a plain PyTorch loop"}


@dataclass(frozen=True)
class Point:
    """One evaluation."""

    recipe: str
    seed: int
    tokens: int
    seconds: float  # of training alone
    prefix_matching: float  # of the best head


def write_points(points: list[Point]) -> None:
    with (HERE / "phase_change.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Point)], lineterminator="\n")
        writer.writeheader()
        for p in points:
            writer.writerow(asdict(p) | {"seconds": f"{p.seconds:.2f}", "prefix_matching": f"{p.prefix_matching:.4f}"})


def band(curves: list[list[tuple[float, float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the common range of all curves, their mean and half its 95 % interval (Student's t; 0 for one curve)."""
    low, high = max(c[0][0] for c in curves), min(c[-1][0] for c in curves)
    x = np.linspace(low, high, 200)
    y = np.array([np.interp(x, *zip(*c, strict=True)) for c in curves])
    n = len(curves)
    half = stdtrit(n - 1, 0.975) * y.std(0, ddof=1) / n**0.5 if n > 1 else np.zeros_like(x)
    return x, y.mean(0), half


def draw(points: list[Point]) -> None:
    """Draw prefix matching against tokens and seconds: a thin line per seed, the mean and its interval."""
    sns.set_theme(style="whitegrid")
    figure = Figure(figsize=(10, 3.8))
    left, right = figure.subplots(1, 2, sharey=True)
    for ax, what, scale, label in (
        (left, "tokens", 1e6, "million tokens seen"),
        (right, "seconds", 1.0, "seconds of training"),
    ):
        _panel(ax, points, what, scale)
        ax.axhline(FORMED, color="black", linewidth=1, linestyle=":")
        ax.set(xscale="log", xlabel=label)
        ax.xaxis.set_major_formatter("{x:g}")
    left.set_ylabel("best head's prefix matching (0..1)")
    figure.legend(*left.get_legend_handles_labels(), loc="upper center", ncols=len(NAMES), frameon=False)
    path = HERE / "phase_change.png"
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})


def _panel(ax: Axes, points: list[Point], what: str, scale: float) -> None:
    for (recipe, name), colour in zip(NAMES.items(), sns.color_palette(), strict=False):
        seeds = sorted({p.seed for p in points if p.recipe == recipe})
        curves = [
            [(getattr(p, what) / scale, p.prefix_matching) for p in points if (p.recipe, p.seed) == (recipe, seed)]
            for seed in seeds
        ]
        if not curves:
            continue
        for curve in curves:
            ax.plot(*zip(*curve, strict=True), color=colour, linewidth=0.7, alpha=0.6)
        x, mean, half = band(curves)
        ax.fill_between(x, (mean - half).clip(0), (mean + half).clip(max=1), color=colour, alpha=0.2, linewidth=0)
        ax.plot(x, mean, color=colour, linewidth=2, label=f"{name}, {len(seeds)} seeds")
