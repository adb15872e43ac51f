"""Stage `train@cell`: train one model of params.yaml, or use the run if a sweep has already trained the model.

To train one model with two processes (the run has the same fingerprint):

    torchrun --nproc-per-node 2 -m pipelines.train_cell L2H4S5
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import torch

from pathsum.config import CellConfig, TrackingConfig, load
from pathsum.core.storage import read_lines, write_json
from pathsum.data.tokens import read_tokens
from pathsum.data.windows import HeldOut, Windows
from pathsum.probes.evaluation import Evaluation
from pathsum.tracking.tracker import Run, mirror, result, run_id, tags
from pathsum.training import ranks
from pathsum.training.device import choose, describe
from pathsum.training.loop import train
from pathsum.training.store import CHECKPOINTS, LOG, adopt, fingerprint, finished, locked
from pipelines.paths import MODELS, RUNS, THREADS, TOKENS, cores, model_of, params, section, stage, training_code

MOST_THREADS = 256  # with thousands, the system refuses to start threads, and torch ends without a message


def run_cell(cell_name: str, cell: CellConfig, tracking: TrackingConfig, overrides: Sequence[str] = ()) -> Path:
    """Train the model of configuration ``cell`` in the run store, unless its run is finished. Return the run's folder.

    ``cell_name`` and the ``overrides`` of an ad-hoc run name the model in the progress bar and in tracking. If another
    process trains the same run, wait for it. Of several processes started by torchrun, only the main one locks the run
    and writes.
    """
    name = " ".join([cell_name, *overrides])
    text, tuning = read_tokens(TOKENS / "train.bin"), read_tokens(TOKENS / "tuning.bin")
    data_hash = text.header.token_hash + tuning.header.token_hash + text.header.tokenizer_hash
    identity = fingerprint(cell, data_hash, training_code())
    run = RUNS / identity
    n_ctx, shown = cell.model.n_ctx, cell.train.eval_windows
    windows = (Windows(text.tokens, n_ctx), HeldOut.of(tuning.tokens, n_ctx, shown, shown).windows)
    with locked(run, wait=True) if ranks.is_main() else nullcontext():
        ranks.barrier()
        if finished(run):
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
        about = Run(name, run_id(cell_name, *overrides, identity), "train", config, tags(cell_name, cell.model))
        with mirror(tracking, about, RUNS) as wandb:
            step = functools.partial(wandb.step, cell)
            train(cell, text.header.d_vocab, text.header.tokenizer_hash, windows, run, wandb.log, name, step)
            if ranks.is_main():
                wandb.summary(result(read_lines(run / LOG, Evaluation)))
                wandb.checkpoint(f"{cell_name}-{identity}", max((run / CHECKPOINTS).iterdir()))
    return run


def set_threads() -> None:
    """Set the number of torch threads of this process, on which the weights do not depend.

    By default it is the number of cores per training process, but at most THREADS. PATHSUM_THREADS overrides it. Raises
    ValueError if PATHSUM_THREADS is not a whole number from 1 to MOST_THREADS.
    """
    share = max(1, min(THREADS, cores() // ranks.local_processes()))
    given = os.environ.get("PATHSUM_THREADS", str(share))
    if not given.isdecimal() or not 1 <= int(given) <= MOST_THREADS:
        raise ValueError(f"PATHSUM_THREADS: expected a number of threads from 1 to {MOST_THREADS}, got {given!r}")
    torch.set_num_threads(int(given))


if __name__ == "__main__":
    with ranks.process_group(), stage(threads=0):
        set_threads()
        values = params()
        name = model_of(sys.argv[1:], values)
        cell = load(CellConfig, values["cells"][name], f"cells.{name}")
        run = run_cell(name, cell, load(TrackingConfig, section(values, "tracking"), "tracking"))
        if ranks.is_main():
            adopt(run, MODELS / name)
