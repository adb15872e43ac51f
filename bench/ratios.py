"""Show the ratios of results.json: one table per kind of measurement, and one figure of all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import seaborn as sns
from matplotlib.figure import Figure

from bench.markdown import NOT_MEASURED, table
from bench.shapes import ON_A_GPU, SHAPES

Results = Mapping[str, Mapping[str, Any]]
TITLES = {shape.name: shape.title for shape in (*SHAPES, *ON_A_GPU)}
MEANING = {
    "compiled": "`torch.compile` of the same model without kernels by hand, same optimizers",
    "plain_loop": "a plain PyTorch loop: fused attention, cross-entropy, AdamW",
    "transformerlens_float32": "TransformerLens 3.x in float32, its default: attention only, AdamW",
    "transformerlens_autocast": "TransformerLens 3.x in bf16 (autocast): attention only, AdamW",
    "matmul_peak": "only the matrix products of our step, outputs allocated before",
    "device_peak": "the product of two 8192 × 8192 matrices, the peak of the GPU",
    "top_entries_50k": "the 1000 largest entries of a head's OV and QK circuits; theirs: topk on all rows",
    "eigenvalues_50k": "OV eigenvalues of 12 heads; theirs: of the d_model × d_model product",
    "top_entries_50k_memory": "peak memory of the search for the 1,000 largest entries",
    "eigenvalues_50k_memory": "peak memory of the OV eigenvalues",
    "paper_recipe": "the paper's recipe with our step: sinusoids in queries and keys, layer norm, AdamW",
}
STAGES = {
    "train_step": "training step",
    "gpu_step": "training step",
    "extract": "circuits at d_vocab 50,000",
    "phase_change_seconds": "time to the phase change",
    "phase_change_tokens": "tokens to the phase change",
}
LENS = "TransformerLens was not installed, so it is not compared here. To compare it, install it in an environment of"
INSTALL = """its own:

```bash
make setup VENV=.scratch/lens
.scratch/lens/bin/pip install 'transformer_lens<4'
make bench VENV=.scratch/lens
```"""


def named(name: str) -> str:
    """Return a readable name of what the row ``name`` of results.json measures."""
    stage, *shape, _ = name.split(".")
    return ", ".join([STAGES[stage], *(TITLES[size] for size in shape)])


def tuned(name: str) -> str:
    """Return how the other recipe of a row was tuned; "" if the row compares no recipes."""
    return "; three learning rates tried" if name.startswith("phase_change") else ""


def bound(found: Mapping[str, Any], key: str) -> str:
    """Format the number ``key`` of a row, with ">" if it is a lower bound; "" for None."""
    return "" if found[key] is None else f"{'> ' if found.get('lower_bound') else ''}{found[key]:,}"


def ratios(results: Results, stage: str, command: str) -> str:
    """Return a Markdown table of the rows whose names begin with ``stage``. If there are none, return a note that names
    the ``command`` that measures them."""
    rows = [
        (
            named(name),
            MEANING[name.split(".")[-1]] + tuned(name),
            f"{found['ours']:,}",
            bound(found, "theirs"),
            bound(found, "ratio"),
            found["unit"],
        )
        for name, found in results.items()
        if name.startswith(stage)
    ]
    if not rows:
        return NOT_MEASURED.format(command)
    return table(("what", "compared with", "ours", "theirs", "ratio", "unit"), rows)


def installing(results: Results) -> str:
    """Return how to install TransformerLens; "" if it was measured."""
    return "" if any("transformerlens" in name for name in results) else f"{LENS} {INSTALL}"


def draw_ratios(results: Results, path: Path) -> None:
    """Draw one bar per ratio, and write the figure to ``path``. Bars that are lower bounds are hatched."""
    shown = {name: found for name, found in results.items() if found["ratio"] is not None}
    labels = [
        f"{named(name)}:\n{re.split('[:;,]', MEANING[name.split('.')[-1]])[0]}".replace("`", "") for name in shown
    ]
    sns.set_theme(style="whitegrid")
    figure = Figure(figsize=(8, 0.45 * len(shown) + 0.8))
    axes = figure.subplots()
    hatches = ["///" if found.get("lower_bound") else "" for found in shown.values()]
    axes.barh(range(len(shown)), [f["ratio"] for f in shown.values()], color=sns.color_palette()[0], hatch=hatches)
    axes.set_yticks(range(len(shown)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.grid(visible=False, axis="y")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("ratio (more than 1: ours is better; hatched: lower bound)")
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})
