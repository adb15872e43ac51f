"""Draw bench/README.md and bench/ratios.png from bench/results.json: `python -m bench.table`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import seaborn as sns
from matplotlib.figure import Figure

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
}
TEXT = """# What was measured

`make bench` measures again and draws this page from `results.json`; no number here is typed. Ratios are what counts:
more than 1 means that ours is better. Both sides of a row ran in one process, in turn, and a ratio is the median over
rounds of neighbours; the absolute numbers are that machine's on that day. Other work on it moves the ratios too.

`train_step` rows are whole optimiser steps of the default recipe (Muon and AdamW, learnt biases by distance, RMS norm),
named by layers, heads and windows of 256 tokens a step. Its `matmul_peak` rows compare the FLOP/s of the model's matrix
products over the whole step with those of the same products alone: the share of a step that could not be saved by
better code around the products. The optimiser's products count as time only.

{table}

![Ratios](ratios.png)

Untested: the `gpu` and `paper` shapes need a GPU; `python -m bench.train_step` measures them where there is one.
"""


def row(name: str, found: dict[str, Any]) -> str:
    stage, *shape, contender = name.split(".")
    numbers = [f"{found[key]:,}" if found[key] is not None else "" for key in ("ours", "theirs", "ratio")]
    cells = [" ".join([stage, *shape]), MEANING[contender], *numbers, found["unit"]]
    return f"| {' | '.join(cells)} |"


def draw(ratios: dict[str, float]) -> None:
    sns.set_theme(style="whitegrid")
    figure = Figure(figsize=(8, 0.28 * len(ratios) + 0.8))
    axes = figure.subplots()
    sns.barplot(x=list(ratios.values()), y=list(ratios), color=sns.color_palette()[0], ax=axes)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("ours / theirs (1: equal)")
    figure.savefig(HERE / "ratios.png", dpi=110, bbox_inches="tight", metadata={"Software": None})


def main() -> None:
    results = json.loads((HERE / "results.json").read_text())
    head = ["| what | beside | ours | theirs | ratio | unit |", "|---|---|---:|---:|---:|---|"]
    table = "\n".join(head + [row(name, found) for name, found in results.items()])
    machines = sorted({found["machine"] for found in results.values()})
    (HERE / "README.md").write_text(TEXT.format(table=table + "\n\nMeasured on: " + "; ".join(machines) + "."))
    draw({name: found["ratio"] for name, found in results.items() if found["ratio"] is not None})


if __name__ == "__main__":
    main()
