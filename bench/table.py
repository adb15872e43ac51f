"""Write bench/README.md from bench/results.json: `python -m bench.table`"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.shapes import ON_A_GPU, SHAPES

HERE = Path(__file__).parent
TITLES = {shape.name: shape.title for shape in (*SHAPES, *ON_A_GPU)}
MEANING = {
    "compiled": "`torch.compile` of the same model and optimizers, without kernels by hand",
    "plain_loop": "a plain PyTorch loop: learned positions, fused attention, cross-entropy, AdamW",
    "transformerlens_autocast": "TransformerLens 3 in bf16 (autocast): attention only, AdamW",
    "transformerlens_float32": "TransformerLens 3 in float32, its default: attention only, AdamW",
    "matmul_peak": "only the matrix products of our step, outputs allocated before",
    "device_peak": "the product of two 8192 × 8192 matrices, the peak of the GPU",
}
THINGS = {"step": "training step", "extract": "extraction", "tokenize": "tokenizing"}
PAGE = """# Benchmarks

`make bench` measures and writes this page, on an idle machine. Absolute numbers depend on the machine; the ratios are
of times within one process, in turn, medians over rounds. More than 1: ours is faster. All compute matrix products in
the type that training chooses: bf16 where the hardware has it. TransformerLens is compared where it is installed:

```bash
make setup VENV=.scratch/lens
.scratch/lens/bin/pip install 'transformer_lens<4'
make bench VENV=.scratch/lens
```

## Training step

A complete optimizer step of the default recipe (Muon and AdamW, biases by distance, RMS norm) on windows of 256 tokens.
In rows with GFLOP/s, ours is the rate of the model's matrix products in a complete step, and the ratio is the share of
the peak that the step reaches. Measured on: {machines}.

{steps}

## On a GPU

Sizes of the profiles. Our step is one CUDA graph. Measured on: {gpus}.

{gpu}

## How cost grows

Starting from a small model, one size at a time is varied. The exponent is the slope of log time on log size (95 %
interval). Memory is the peak beyond that at the start.

{growth}

What else was measured in 2026 (circuits at d_vocab 50,000, other recipes, a thousand models) is in
[docs/log/speed.md](../docs/log/speed.md); its code and raw results are at the tag `experiments-2026`.
"""


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (head, ["---"] * len(head), *rows))


def steps(results: Mapping[str, Any], start: str) -> str:
    """Return the rows whose names begin with ``start``: our rate, theirs, and the ratio."""
    rows = [
        (TITLES[name.split(".")[1]], MEANING[name.split(".")[2]],
         f"{row['ours']:,}", f"{row['theirs']:,}", row["ratio"], row["unit"])
        for name, row in results.items()
        if name.startswith(start)
    ]  # fmt: skip
    return table(("sizes", "compared with", "ours", "theirs", "ratio", "unit"), rows)


def growth(results: Mapping[str, Any]) -> str:
    """Return the rows on the growth of cost."""
    rows = [
        (THINGS[name.split(".")[1]], name.split(".")[2], row["sizes"], row["seconds"], row["time"], row["MiB"])
        for name, row in results.items()
        if name.startswith("growth.")
    ]
    return table(("what", "size", "from, to", "seconds", "exponent of time", "MiB"), rows)


def page(results: Mapping[str, Any]) -> str:
    """Return bench/README.md."""

    def machines(start: str) -> str:
        return "; ".join(sorted({row["machine"] for name, row in results.items() if name.startswith(start)}))

    return PAGE.format(
        machines=machines("train_step."), steps=steps(results, "train_step."), growth=growth(results),
        gpus=machines("gpu_step."), gpu=steps(results, "gpu_step."),
    )  # fmt: skip


if __name__ == "__main__":
    (HERE / "README.md").write_text(page(json.loads((HERE / "results.json").read_text())))
