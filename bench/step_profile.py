"""Measure where the time of our training step goes: `python -m bench.step_profile`

The step of the default batch runs on one thread under torch's profiler. Each operation belongs to one part of the step.
The time of an operation excludes the operations that it calls. It is the median over steps, because other work on the
machine interrupts single operations. Writes step_profile.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from bench.contenders import Step, ours
from bench.measuring import machine
from bench.shapes import DEFAULT

PROFILE = Path(__file__).with_name("step_profile.json")
PRODUCTS = {f"aten::{name}" for name in ("mm", "bmm", "addmm", "addmm_", "baddbmm", "baddbmm_")}
MODEL = "matrix products of the model"
WITHIN = (  # an operation within one of these belongs to this part
    ("Muon", "Muon, its orthogonalization included"),
    ("AdamW", "AdamW"),
    ("_NextTokenLoss", "loss without its products: softmax over the vocabulary"),
    ("softmax", "softmax of attention and its gradient"),
    ("_BiasedAttention", "attention's masks, position biases and copies"),
    ("_RMSNorm", "RMS norm and its gradient"),
    ("mbedding", "embedding and its gradient"),
)
STEP = "training step"
REST = "sums, copies, autograd and Python"
Names = tuple[str, ...]  # of an operation and of its callers


def part(names: Names) -> str:
    """Return the part of the step to which an operation belongs. ``names`` are its own name and those of its
    callers."""
    if names[0] in PRODUCTS and not any("Optimizer" in name for name in names):
        return MODEL
    return next((title for within, title in WITHIN if any(within in name for name in names)), REST)


def microseconds(step: Step, count: int) -> list[Counter[Names]]:
    """Run ``step`` ``count`` times under the profiler. Return, for each run, the time of each operation in µs."""
    with profile(activities=[ProfilerActivity.CPU]) as run:
        for _ in range(count):
            with record_function(STEP):
                step()
    found: dict[int, Counter[Names]] = {}
    for event in run.events() or ():
        *inner, outer = callers(event)
        if outer.name == STEP:
            names = tuple(e.name for e in inner) or (STEP,)
            found.setdefault(outer.id, Counter())[names] += event.self_cpu_time_total
    return list(found.values())


def callers(event: Any) -> Iterator[Any]:
    """Yield a profiled operation, then its caller, then the caller of that, and so on."""
    while event is not None:
        yield event
        event = event.cpu_parent


def shares(steps: Sequence[Counter[Names]]) -> dict[str, float]:
    """Return the share of each part (0 to 1), largest first, from the median time of each operation over ``steps``."""
    found: Counter[str] = Counter()
    for names in {names for step in steps for names in step}:
        found[part(names)] += statistics.median(step[names] for step in steps)
    return {title: round(time / found.total(), 4) for title, time in found.most_common()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=15)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    step = ours(DEFAULT)
    for _ in range(3):
        step()
    found = {"machine": machine("cpu", threads=1), "shares": shares(microseconds(step, steps))}
    PROFILE.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
