"""Measure the tokens per second of our training step and of others: `python -m bench.train_step`

Ours is the training step of the default recipe (Muon and AdamW). The others are the same model and optimizers without
hand-written kernels, compiled by ``torch.compile``; a plain PyTorch loop with AdamW; the attention-only model of
TransformerLens with AdamW; and only the matrix products of our step, into outputs that already exist. All run in turn
in one process, round after round, so that other work on the machine slows all of them. Ratios are medians over rounds.
On a GPU, the peak of its matrix products is measured once, after all rounds.

A run replaces all rows of its tables: one for the CPU and, if there is a GPU, one for it. TransformerLens is not a
dependency: without it, its rows are left out. Without a C++ compiler, those of ``torch.compile`` are left out. With
more than MOST_LOGITS logits in a step, all rivals are left out, because they store several tables of them in float32.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.exc import BackendCompilerFailed

from bench.contenders import Step, autocast, compiled, ours, plain_loop, products_alone, transformerlens
from bench.measuring import THREADS, machine, record
from bench.shapes import ON_A_GPU, SHAPES, Shape, flop
from pathsum.training.device import peak_flops, product_dtype
from pathsum.training.replay import EAGER

SECONDS = 0.25  # least time of each contender in each round
MOST_LOGITS = 2**31  # in a step; rivals store several tables of them in float32, 8 GiB each
SIDE = 8192  # of the square matrices whose product gives the peak of a GPU
WARM = EAGER + 2  # steps before the measurement, so that a recorded step has been recorded


def seconds_a_step(step: Step) -> float:
    """Return the mean seconds per step, over as many steps as it takes to fill SECONDS."""
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        step()
        steps += 1
    return (time.perf_counter() - start) / steps


def contenders(shape: Shape) -> dict[str, Callable[[Shape], Step]]:
    """Return, by name, the functions that make the training steps compared at the sizes of ``shape``."""
    found: dict[str, Callable[[Shape], Step]] = {"ours": ours, "matmul_peak": products_alone}
    if shape.tokens * shape.d_vocab > MOST_LOGITS:
        return found
    found["plain_loop"] = plain_loop
    if shape.n_layers == 2:  # compiling takes longer than the measurement
        found["compiled"] = compiled
    if importlib.util.find_spec("transformer_lens"):
        found["transformerlens_float32"] = lambda s: transformerlens(s, False)
        if autocast(shape.device):
            found["transformerlens_autocast"] = lambda s: transformerlens(s, True)
    return found


def warm(makers: dict[str, Callable[[Shape], Step]], shape: Shape) -> dict[str, Step]:
    """Make each step and run it WARM times."""
    steps = {}
    for name, make in makers.items():
        try:
            step = make(shape)
            for _ in range(WARM):
                step()
        except BackendCompilerFailed as error:
            if name != "compiled":
                raise
            print(f"torch.compile is left out, because it found no working C++ compiler: {str(error).splitlines()[0]}")
            continue
        steps[name] = step
    return steps


def measure(shape: Shape, rounds: int) -> dict[str, dict[str, Any]]:
    """Compare our step with each other step at the sizes of ``shape``, and return a row for each."""
    steps = warm(contenders(shape), shape)
    times = [{name: seconds_a_step(step) for name, step in steps.items()} for _ in range(rounds)]
    if shape.device == "cuda":
        seconds = flop(shape) / peak_flops(torch.device("cuda"), SIDE)
        times = [round_ | {"device_peak": seconds} for round_ in times]
    found = {}
    for name in sorted(times[0].keys() - {"ours"}):
        work, unit = float(shape.tokens), "tokens/s"
        if name in ("matmul_peak", "device_peak"):
            products = str(product_dtype(shape.device)).removeprefix("torch.")
            work, unit = flop(shape) / 1e9, f"GFLOP/s of {products} products"
        found[f"{stage(shape.device)}.{shape.name}.{name}"] = {
            "ours": round(statistics.median(work / t["ours"] for t in times)),
            "theirs": round(statistics.median(work / t[name] for t in times)),
            "ratio": round(statistics.median(t[name] / t["ours"] for t in times), 2),
            "unit": unit,
            "machine": machine(shape.device),
        }
    return found


def stage(device: str) -> str:
    """Return the beginning of the names of all rows that are measured on ``device``."""
    return "train_step" if device == "cpu" else "gpu_step"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", choices=("cpu", "cuda"), help="measure on this device only")
    arguments = parser.parse_args()
    if arguments.only == "cuda" and not torch.cuda.is_available():
        parser.error("--only cuda: expected a GPU, got none that torch can see")
    torch.set_num_threads(THREADS)
    if not importlib.util.find_spec("transformer_lens"):
        print("transformer_lens is not installed, so its rows are left out; bench/README.md says how to install it")
    for device, shapes in {"cpu": SHAPES, "cuda": ON_A_GPU}.items():
        if arguments.only not in (None, device) or (device == "cuda" and not torch.cuda.is_available()):
            continue
        found = {}
        for shape in shapes:
            rows = measure(shape, arguments.rounds)
            for name, row in rows.items():
                print(f"{name:50} {row['ours']:9,} {row['theirs']:9,} {row['ratio']:6.2f}  {row['unit']}", flush=True)
            found |= rows
        record(f"{stage(device)}.", found)


if __name__ == "__main__":
    main()
