"""Test the law tokens at the phase change ∝ √(batch · context): `make onset-law`

The default two-layer model, with constant learning rates after the warm-up, trains with several batch sizes, contexts
(n_ctx) and seeds. The slope of log tokens on log(batch · context) is the exponent, which has a 95 % interval. The law
predicts 0.5. Separate exponents of batch and context are fitted as well. `--minutes` limits the total time. A model
without a phase change by then is listed but not part of the fit, which biases the exponent toward 0. Writes
onset_law.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bench.measuring import THREADS
from experiments.fits import slopes
from experiments.runs import Run, Text, default_cell, save, suite, until_changed
from pathsum.data.tokens import read_tokens
from pathsum.data.windows import Windows
from pipelines.paths import TOKENS

CELLS = ((4, 128), (8, 128), (4, 256), (8, 256), (16, 256), (8, 512))  # batch, n_ctx
LAW = 0.5


def run(batch: int, seed: int, text: Text) -> Run:
    """Return a run of the default two-layer model with batch size ``batch``, on the windows of ``text``."""
    model, train = default_cell()
    about = {"batch": batch, "n_ctx": text.windows.n_ctx, "seed": seed}
    train = train.model_copy(update={"batch": batch, "decay_share": 0.0})
    found = suite(about, model.model_copy(update={"n_ctx": text.windows.n_ctx}), train, text)
    found.every = 25_000
    return found


def law(found: Sequence[tuple[int, int, float]]) -> dict[str, Any]:
    """Fit the exponents to models given as (batch size, n_ctx, tokens at the phase change)."""
    batch, n_ctx, tokens = np.log(np.array(found, dtype=float)).T
    fits = (*slopes(tokens, batch + n_ctx), *slopes(tokens, batch, n_ctx))
    named = {
        name: dict(zip(("exponent", "low", "high"), (round(value, 3) for value in fit), strict=True))
        for name, fit in zip(("batch_times_context", "batch", "context"), fits, strict=True)
    }
    return {"law": LAW, **named, "points": len(found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--minutes", type=float, default=25)
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    file = read_tokens(TOKENS / "train.bin")
    texts = {n: Text(Windows(file.tokens, n), file.header.d_vocab) for n in {n for _, n in CELLS}}
    cells = until_changed([run(b, seed, texts[n]) for b, n in CELLS for seed in options.seeds], options.minutes)
    changed = [(c["batch"], c["n_ctx"], c["tokens"]) for c in cells if c["tokens"]]
    found = law(changed) if len(changed) > 3 else {}
    save("onset_law.json", found | {"unchanged": len(cells) - len(changed), "cells": cells})


if __name__ == "__main__":
    main()
