"""Keep what was measured in results.json, and write bench/README.md from it: `python -m bench.table`"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pathsum.training.device import describe

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
THREADS = 2
NAMES = {
    "train_step.L2H4_batch16": "2 layers, 4 heads, batch 16",
    "train_step.L2H4_batch8": "2 layers, 4 heads, batch 8",
    "train_step.L1H4_batch8": "1 layer, 4 heads, batch 8",
    "train_step.L0_batch8": "0 layers, batch 8",
    "gpu_step.gpu": "profile `gpu`, on a GPU",
    "gpu_step.paper": "profile `paper`, on a GPU",
    "plain_loop": "a plain PyTorch loop: learned positions, fused attention, cross-entropy, AdamW",
    "transformerlens_autocast": "TransformerLens 3 in bf16 (autocast): attention only, AdamW",
    "transformerlens_float32": "TransformerLens 3 in float32, its default: attention only, AdamW",
    "matmul_peak": "only the matrix products of our step, outputs allocated before",
    "device_peak": "the product of two 8192 × 8192 matrices, the peak of the GPU",
    "growth.step": "training step",
    "growth.extract": "extraction",
}
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

What else was measured in 2026 (`torch.compile`, tokenizing, circuits at d_vocab 50,000, other recipes, a thousand
models) is in [docs/log/speed.md](../docs/log/speed.md); its code and raw results are at the tag `experiments-2026`.
"""


def machine(device: str) -> str:
    """Return the conditions of a measurement: processor or GPU, type of its products, threads, version of torch."""
    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, bfloat16 products, torch {torch.__version__}"
    return f"{describe(torch.device(device)).name}, threads: {THREADS}, torch {torch.__version__}"


def record(start: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace the rows of results.json whose names begin with ``start``, so that all of them are from one run."""
    kept = {name: row for name, row in json.loads(RESULTS.read_text()).items() if not name.startswith(start)}
    RESULTS.write_text(json.dumps(kept | dict(rows), indent=2, sort_keys=True) + "\n")


def table(results: Mapping[str, Any], start: str, columns: Mapping[str, str]) -> str:
    """Return the rows whose names begin with ``start`` as a Markdown table, with ``columns`` by the keys of a row."""
    lines: list[Sequence[str]] = [tuple(columns.values()), ["---"] * len(columns)]
    for name, row in results.items():
        if name.startswith(start):
            what, _, which = name.rpartition(".")
            shown = {"what": NAMES[what], "which": NAMES.get(which, which), **row}
            lines.append([f"{shown[key]:,}" if isinstance(shown[key], int) else str(shown[key]) for key in columns])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(results: Mapping[str, Any]) -> str:
    """Return bench/README.md."""

    def machines(start: str) -> str:
        return "; ".join(sorted({row["machine"] for name, row in results.items() if name.startswith(start)}))

    step = {"what": "sizes", "which": "compared with", **{k: k for k in ("ours", "theirs", "ratio", "unit")}}
    grown = {"what": "what", "which": "size", "sizes": "from, to", "seconds": "seconds", "time": "exponent of time"}
    return PAGE.format(
        machines=machines("train_step."), steps=table(results, "train_step.", step),
        gpus=machines("gpu_step."), gpu=table(results, "gpu_step.", step),
        growth=table(results, "growth.", grown | {"MiB": "MiB"}),
    )  # fmt: skip


if __name__ == "__main__":
    (HERE / "README.md").write_text(page(json.loads(RESULTS.read_text())))
