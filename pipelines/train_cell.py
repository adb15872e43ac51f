"""Stage `train`: train every model of the grid that the store lacks, and link all of them to models/.

python -m pipelines.train_cell L2H4S5 trains this model only; several processes can share it:

    torchrun --nproc-per-node 2 -m pipelines.train_cell L2H4S5
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import torch

from pathsum.claims.formatting import millions, number
from pathsum.config import CellConfig, TrackingConfig, load
from pathsum.core import store
from pathsum.core.storage import read_json, read_lines, write_json
from pathsum.records.evaluation import Evaluation
from pathsum.text.tokens import TokenHeader, read_tokens
from pathsum.text.windows import HeldOut, Windows
from pathsum.training import ranks
from pathsum.training.device import choose, describe
from pathsum.training.loop import train
from pathsum.training.store import CHECKPOINTS, LOG
from pathsum.training.tracker import Run, mirror, result, run_id, tags
from pipelines import grid, pool
from pipelines.paths import MODELS, RUNS, TOKENS, model_of, params, section, stage

CODE = "pathsum.training.loop"
QUARTERS = 4  # of training, after each of which a line is printed


def run_of(cell: CellConfig) -> Path:
    """Return the folder of this model in the store, whether or not it has been trained."""
    train, tuning = (read_json(TOKENS / f"{part}.json", TokenHeader) for part in ("train", "tuning"))
    data = (train.token_hash, tuning.token_hash, train.tokenizer_hash)
    return RUNS / store.fingerprint(CODE, cell=cell.model_dump(), data=data)


def run_cell(cell_name: str, cell: CellConfig, tracking: TrackingConfig, overrides: Sequence[str] = ()) -> Path:
    """Train the model of configuration ``cell`` in the store, unless it is finished there."""
    name = " ".join([cell_name, *overrides])
    text, tuning = read_tokens(TOKENS / "train.bin"), read_tokens(TOKENS / "tuning.bin")
    run = run_of(cell)
    n_ctx, shown = cell.model.n_ctx, cell.train.eval_windows
    windows = (Windows(text.tokens, n_ctx), HeldOut.of(tuning.tokens, n_ctx, shown, shown).windows)
    with store.locked(run) if ranks.is_main() else nullcontext():
        ranks.barrier()
        if store.finished(run):
            if ranks.is_main():
                print(f"{name}: trained before; nothing is logged again")
            return run
        if ranks.is_main():
            if (found := len(windows[1])) < shown:
                said = f"{name}: evaluated on all {found} windows of the tuning text, fewer than train.eval_windows"
                print(said, file=sys.stderr)
            write_json(run / "cell.json", cell.model_dump())
            write_json(run / "device.json", describe(choose(cell.train.device)))
        else:
            tracking = tracking.model_copy(update={"mode": "off"})
        config = {**cell.model_dump(), "overrides": " ".join(overrides)}
        about = Run(name, run_id(cell_name, *overrides, run.name), "train", config, tags(cell_name, cell.model))
        with mirror(tracking, about, RUNS) as wandb:
            told = Told(name, cell.train.tokens)

            def log(evaluation: Evaluation) -> None:
                wandb.log(evaluation)
                told(evaluation)

            step = functools.partial(wandb.step, cell)
            train(cell, text.header.d_vocab, text.header.tokenizer_hash, windows, run, log, name, step)
            if ranks.is_main():
                wandb.summary(result(read_lines(run / LOG, Evaluation)))
                wandb.checkpoint(f"{cell_name}-{run.name}", max((run / CHECKPOINTS).iterdir()))
    return run


class Told:
    """Prints a line after each quarter of the training of a model."""

    def __init__(self, name: str, tokens: int) -> None:
        self.name, self.tokens, self.quarter = name, tokens, 0
        self.begun: tuple[float, int] | None = None  # time and tokens at the first evaluation

    def __call__(self, evaluation: Evaluation) -> None:
        seen, now = evaluation.tokens_seen, time.monotonic()
        began, from_tokens = self.begun = self.begun or (now, seen)
        if (quarter := QUARTERS * seen // max(1, self.tokens)) <= self.quarter:
            return
        self.quarter = quarter
        best = max((score for layer in evaluation.prefix_matching for score in layer), default=None)
        left = (now - began) * (self.tokens - seen) / (seen - from_tokens) if seen > from_tokens else 0.0
        print(
            f"{self.name:<20}  {millions(seen)} of {millions(self.tokens)} tokens, "
            f"loss {number(evaluation.val_loss_nats, 3)} nats"
            + (f", prefix matching {best:.2f}" if best is not None else "")
            + (f", {left:.0f} s left" if left >= 1 else ""),
            file=sys.stderr,
            flush=True,
        )


def set_threads() -> None:
    """Set the number of torch threads of this process, on which the weights do not depend."""
    given = os.environ.get("PATHSUM_THREADS") or str(max(1, pool.threads() // ranks.local_processes()))
    if not given.isdecimal() or not 1 <= int(given) <= 256:
        raise ValueError(f"PATHSUM_THREADS: expected a number of threads from 1 to 256, got {given!r}")
    torch.set_num_threads(int(given))


def make(name: str) -> None:
    """Train the model ``name`` of params.yaml in the store."""
    set_threads()
    values = params()
    run_cell(name, grid.models(values)[name], load(TrackingConfig, section(values, "tracking"), "tracking"))


if __name__ == "__main__":
    with ranks.process_group(), stage(threads=0):
        cells = grid.models(params())
        if len(sys.argv) > 1:
            make(model_of(sys.argv[1:], list(cells)))
        else:
            runs = {name: run_of(cell) for name, cell in cells.items()}
            pool.for_each("pipelines.train_cell", [name for name, run in runs.items() if not store.finished(run)])
            store.publish(MODELS, runs)
