"""Write bench/README.md and its figures from the stored measurements: `python -m bench.table`"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from bench.markdown import NOT_MEASURED, table
from bench.memory import needs
from experiments.summary import dilution, onset_law, phase_change

HERE = Path(__file__).parent
MEANING = {
    "transformerlens_float32": "TransformerLens 3.x, attention only, default settings: float32, AdamW",
    "transformerlens_autocast": "TransformerLens 3.x, attention only: bf16 autocast, AdamW",
    "plain_loop": "a plain PyTorch loop: fused attention, cross-entropy, AdamW, bf16 autocast",
    "matmul_peak": "only the matrix products of our step: bf16, outputs allocated before",
    "top_entries_50k": "1,000 largest entries of a head's OV and QK circuits, d_vocab 50,000; theirs: topk on all rows",
    "eigenvalues_50k": "OV eigenvalues of 12 heads, d_vocab 50,000; theirs: of the d_model × d_model product",
    "top_entries_50k_memory": "peak memory of the search for the 1,000 largest entries",
    "eigenvalues_50k_memory": "peak memory of the OV eigenvalues",
    "paper_recipe": "the paper's recipe with our step: sinusoids in queries and keys, layer norm, AdamW",
}
THINGS = {"step": "training step", "extract": "extraction", "tokenize": "tokenizing"}
OF = {"seconds": "time", "peak_mb": "peak memory"}


def ratios(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the Markdown table of ratios."""
    rows = []
    for name, found in results.items():
        stage, *shape, contender = name.split(".")
        bound = "> " if found.get("lower_bound") else ""
        theirs = [f"{bound}{found[key]:,}" if found[key] is not None else "" for key in ("theirs", "ratio")]
        rows.append((" ".join([stage, *shape]), MEANING[contender], f"{found['ours']:,}", *theirs, found["unit"]))
    return table(("what", "compared with", "ours", "theirs", "ratio", "unit"), rows)


def growth() -> str:
    """Return the Markdown table of exponents, and draw growth.png."""
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
    head = ("what is measured", "size", "exponent (95 % interval)", "by count, at the same sizes", "in the limit")
    draw_growth()
    return table(head, rows) + "\n\n![Time and memory against each size](growth.png)"


def draw_growth() -> None:
    """Draw time and memory against each size, both relative to the smallest size."""
    measured = pd.read_csv(HERE / "growth.csv")
    numbers = ["size", *OF]
    smallest = measured.groupby(["what", "axis"])[numbers].transform("first")
    measured[numbers] = measured[numbers] / smallest.where(smallest > 0)
    measured["what"] = measured["what"].map(THINGS)
    lines = measured.rename(columns=OF).melt(["what", "axis", "size"], OF.values(), "of", "times that of the smallest")
    sns.set_theme(style="whitegrid")
    grid = sns.relplot(
        lines.dropna(), x="size", y="times that of the smallest", hue="what", style="of", col="axis", col_wrap=3,
        kind="line", markers=["o", "o"], height=3.2, aspect=1.25, facet_kws={"sharex": False, "sharey": False},
    )  # fmt: skip
    for axis, ax in grid.axes_dict.items():
        ax.set(xscale="log", yscale="log", title="", xlabel=f"{axis} / smallest")
        for side in (ax.xaxis, ax.yaxis):
            side.set_major_locator(LogLocator(2))
            side.set_major_formatter("{x:g}")
            side.set_minor_locator(NullLocator())
    grid.savefig(HERE / "growth.png", dpi=110, metadata={"Software": None})


def untested(found: Mapping[str, Any]) -> str:
    """Return a sentence that names the profiles whose training steps were not measured on a GPU."""
    left = [f"`{shape}`" for shape in ("gpu", "paper") if not any(n.startswith(f"train_step.{shape}.") for n in found)]
    if not left:
        return "The training steps of `gpu` and `paper` were measured on the GPU that is named above."
    return (
        f"Untested on a GPU: {' and '.join(left)}. `python -m bench.train_step` measures their training steps if there "
        "is a GPU. Complete runs of these profiles, and several GPUs, have not been tested."
    )


def draw_ratios(results: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw one bar per ratio. Bars of lower bounds are hatched."""
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
    axes.set_xlabel("ratio (more than 1: ours is better; hatched: lower bound)")
    figure.savefig(HERE / "ratios.png", dpi=110, bbox_inches="tight", metadata={"Software": None})


def main() -> None:
    results = json.loads((HERE / "results.json").read_text())
    page = (HERE / "README.template.md").read_text().format(
        ratios=ratios(results),
        machines="; ".join(sorted({found["machine"] for found in results.values()})),
        phase_change=phase_change(results),
        onset_law=onset_law(),
        dilution=dilution(),
        growth=growth(),
        memory=needs(),
        untested=untested(results),
    )  # fmt: skip
    (HERE / "README.md").write_text(page)
    draw_ratios(results)


if __name__ == "__main__":
    main()
