"""The law tokens ∝ √(batch · context) for the phase change: `make onset-law`

The default two-layer cell with its rates held after the warm-up, for some batches and contexts, each with some seeds:
one straight line through log tokens on log(batch · context), its slope, and the 95 % interval of that. The law says
0.5; batch and context get a slope of their own, too. Cells take turns; `--minutes` bounds the whole. A cell that has
not changed by then is in no fit, which biases the exponent towards 0; it is listed. Writes onset_law.json.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pipelines  # noqa: F401 (first: threads that wait must not spin)

import numpy as np  # isort: skip
import torch  # isort: skip

from experiments.fits import slopes  # isort: skip
from experiments.phase_change import Runner, Text, default_cell, suite  # isort: skip
from bench.train_step import THREADS  # isort: skip
from pathsum.data.tokens import read_tokens  # isort: skip
from pathsum.data.windows import Windows  # isort: skip
from pipelines.paths import TOKENS  # isort: skip

OUTPUT = Path(__file__).with_name("onset_law.json")
CELLS = ((4, 128), (8, 128), (4, 256), (8, 256), (16, 256), (8, 512))  # batch, n_ctx
LAW = 0.5


def runner(batch: int, n_ctx: int, seed: int, texts: dict[int, Text]) -> Runner:
    model, train = default_cell()
    train = train.model_copy(update={"batch": batch, "decay_share": 0.0})
    found = suite(f"{batch}x{n_ctx}", seed, model.model_copy(update={"n_ctx": n_ctx}), train, texts[n_ctx], math.inf)
    found.every = 25_000
    return found


def until_changed(runs: Sequence[Runner], minutes: float) -> None:
    """Train all in turn until each has changed, or time is up."""
    start = time.perf_counter()
    while (ahead := [r for r in runs if not r.done]) and time.perf_counter() - start < 60 * minutes:
        least = min(ahead, key=lambda r: r.seconds)
        least.advance()
        print(f"{least.recipe:8} seed {least.seed}  {least.curve[-1].tokens / 1e6:5.2f} M tokens  "
              f"{least.curve[-1].prefix_matching:.2f}", flush=True)  # fmt: skip


def law(found: Sequence[tuple[int, int, float]]) -> dict[str, Any]:
    """Fit the exponents of (batch, n_ctx, tokens at the change)."""
    batch, n_ctx, tokens = np.log(np.array(found, dtype=float)).T

    def named(fit: tuple[float, float, float]) -> dict[str, float]:
        return dict(zip(("exponent", "low", "high"), (round(v, 3) for v in fit), strict=True))

    together = slopes(tokens, batch + n_ctx)[0]
    of_batch, of_context = slopes(tokens, batch, n_ctx)
    return {
        "law": LAW,
        "batch_times_context": named(together),
        "batch": named(of_batch),
        "context": named(of_context),
        "points": len(found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--minutes", type=float, default=25)
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    file = read_tokens(TOKENS / "train.bin")
    texts = {n: Text.of(Windows(file.tokens, n), file.header.d_vocab) for n in {n for _, n in CELLS}}
    runs = {(b, n, seed): runner(b, n, seed, texts) for b, n in CELLS for seed in options.seeds}
    until_changed(list(runs.values()), options.minutes)
    points = [
        {"batch": b, "n_ctx": n, "seed": s, "tokens": change.tokens if (change := r.change()) else None,
         "tokens_seen": r.curve[-1].tokens}
        for (b, n, s), r in runs.items() if r.curve
    ]  # fmt: skip
    changed = [(p["batch"], p["n_ctx"], p["tokens"]) for p in points if p["tokens"]]
    found = (law(changed) if len(changed) > 3 else {}) | {"unchanged": len(points) - len(changed), "cells": points}
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({k: v for k, v in found.items() if k != "cells"}, indent=1))


if __name__ == "__main__":
    main()
