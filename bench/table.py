"""Draw bench/README.md and its pictures from what was measured: `python -m bench.table`"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from bench.memory import needs
from experiments.summary import NOT_MEASURED, dilution, onset_law, phase_change, table

HERE = Path(__file__).parent
MEANING = {
    "transformerlens_float32": "TransformerLens 3.x, attention only, as it comes: float32, AdamW",
    "transformerlens_autocast": "TransformerLens 3.x, attention only: bf16 autocast, AdamW",
    "plain_loop": "a plain PyTorch loop: fused attention, cross-entropy, AdamW, bf16 autocast",
    "matmul_peak": "the step's own matrix products alone, bf16, outputs allocated before",
    "top_entries_50k": "1,000 largest entries of a head's OV and QK at d_vocab 50,000; theirs: topk of every row block",
    "eigenvalues_50k": "copying eigenvalues of 12 heads; theirs: of the d_model × d_model product",
    "top_entries_50k_memory": "peak memory of the 1,000 largest entries",
    "eigenvalues_50k_memory": "peak memory of the copying eigenvalues",
    "paper_recipe": "the paper's recipe in the suite's own step: sinusoids in queries and keys, layer norm, AdamW",
}
THINGS = {"step": "training step", "extract": "extraction", "tokenize": "tokenizing"}
OF = {"seconds": "time", "peak_mb": "peak memory"}


def row(name: str, found: Mapping[str, Any]) -> str:
    stage, *shape, contender = name.split(".")
    bound = "> " if found.get("lower_bound") else ""
    numbers = [
        f"{found['ours']:,}",
        *(f"{bound}{found[k]:,}" if found[k] is not None else "" for k in ("theirs", "ratio")),
    ]
    return f"| {' | '.join([' '.join([stage, *shape]), MEANING[contender], *numbers, found['unit']])} |"


def growth() -> str:
    if not (path := HERE / "growth.json").exists():
        return NOT_MEASURED.format("python -m bench.growth")
    rows = [
        (
            f"{THINGS[f['what']]}, {OF[f['of']]}",
            f["axis"],
            f"{f['exponent']} ({f['low']} to {f['high']})",
            "" if f["counted"] is None else f["counted"],
            "faster than any power" if f["limit"] is None else f["limit"],
        )
        for f in json.loads(path.read_text())
    ]
    head = ("what", "grows with", "exponent, 95 % interval", "counted at the same sizes", "in the limit")
    draw_growth()
    return table(head, rows) + "\n\n![Time and memory against each size](growth.png)"


def draw_growth() -> None:
    """Against each size, relative to the smallest."""
    with (HERE / "growth.csv").open() as file:
        measured = list(csv.DictReader(file))
    axes_of = list(dict.fromkeys(m["axis"] for m in measured))
    sns.set_theme(style="whitegrid")
    figure = Figure(figsize=(12, 6.4))
    grid = figure.subplots(2, 3, squeeze=False).flat
    lines: dict[str, Line2D] = {}
    for ax, axis in zip(grid, axes_of, strict=False):
        for what, colour in zip(THINGS, sns.color_palette(), strict=False):
            points = [m for m in measured if (m["what"], m["axis"]) == (what, axis)]
            for of, style in zip(OF, ("-", "--"), strict=True):
                if points and float(points[0][of]) > 0:
                    x, y = ([float(p[k]) / float(points[0][k]) for p in points] for k in ("size", of))
                    (line,) = ax.plot(x, y, style, marker="o", markersize=4, color=colour)
                    lines[f"{THINGS[what]}, {OF[of]}"] = line
        ax.set(xscale="log", yscale="log", xlabel=f"{axis} / smallest", ylabel="times that of the smallest")
        for side in (ax.xaxis, ax.yaxis):
            side.set_major_locator(LogLocator(2))
            side.set_major_formatter("{x:g}")
            side.set_minor_locator(NullLocator())
    figure.tight_layout(rect=(0, 0, 1, 0.91))
    figure.legend(lines.values(), lines.keys(), loc="upper center", ncols=3, frameon=False)
    figure.savefig(HERE / "growth.png", dpi=110, bbox_inches="tight", metadata={"Software": None})


def memory() -> str:
    rows = [(n.profile, n.cell, f"{n.parameters:,}", f"{n.training:.2f}", f"{n.extraction:.2f}") for n in needs()]
    head = ("profile", "largest cell", "parameters", "training, GiB of the device", "extraction, GiB of the host")
    return table(head, rows)


def untested(found: Mapping[str, Any]) -> str:
    """List the profiles whose shapes were not measured on a GPU."""
    left = [f"`{shape}`" for shape in ("gpu", "paper") if not any(n.startswith(f"train_step.{shape}.") for n in found)]
    if not left:
        return "On a GPU: the training steps of `gpu` and `paper`, on the device that is named above."
    return (
        f"Untested on a GPU: {' and '.join(left)}. `python -m bench.train_step` measures their training steps where "
        "there is one; whole runs of these profiles, and several GPUs, have not been tried."
    )


def draw(results: Mapping[str, Mapping[str, Any]]) -> None:
    """A bar a ratio, hatched where it is a lower bound."""
    shown = {name: found for name, found in results.items() if found["ratio"] is not None}
    sns.set_theme(style="whitegrid")
    figure = Figure(figsize=(8, 0.28 * len(shown) + 0.8))
    axes = figure.subplots()
    hatches = ["///" if found.get("lower_bound") else "" for found in shown.values()]
    axes.barh(list(shown), [f["ratio"] for f in shown.values()], color=sns.color_palette()[0], hatch=hatches)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.grid(visible=False, axis="y")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("times as good as theirs (1: equal; hatched: at least)")
    figure.savefig(HERE / "ratios.png", dpi=110, bbox_inches="tight", metadata={"Software": None})


def main() -> None:
    results = json.loads((HERE / "results.json").read_text())
    head = ["| what | beside | ours | theirs | ratio | unit |", "|---|---|---:|---:|---:|---|"]
    text = (HERE / "README.template.md").read_text()
    parts = {
        "ratios": "\n".join(head + [row(name, found) for name, found in results.items()]),
        "machines": "; ".join(sorted({found["machine"] for found in results.values()})),
        "phase_change": phase_change(results),
        "onset_law": onset_law(),
        "dilution": dilution(),
        "growth": growth(),
        "memory": memory(),
        "untested": untested(results),
    }
    (HERE / "README.md").write_text(text.format(**parts))
    draw(results)


if __name__ == "__main__":
    main()
