"""Stage `train@cell`: train one cell of params.yaml, or adopt what a sweep has already trained."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pathsum.config import CellConfig, TrackingConfig, load
from pathsum.data.tokens import read_tokens
from pathsum.data.windows import Windows
from pathsum.storage import write_json
from pathsum.tracking import mirror
from pathsum.training.loop import total_steps, train
from pathsum.training.store import adopt, fingerprint, finished, locked
from pipelines.paths import MODELS, RUNS, THREADS, TOKENS, params, stage


def run_cell(name: str, cell: CellConfig, tracking: TrackingConfig, wait: bool) -> Path:
    """Train ``cell`` in the run store, unless it is there; its folder. ``wait`` for another process on the same run."""
    text, held_out = read_tokens(TOKENS / "train.bin"), read_tokens(TOKENS / "val.bin")
    identity = fingerprint(cell, text.header.token_hash + held_out.header.token_hash + text.header.tokenizer_hash)
    run = RUNS / identity
    windows = (Windows(text.tokens, cell.model.n_ctx), Windows(held_out.tokens, cell.model.n_ctx))
    with locked(run, wait):
        if finished(run, total_steps(cell)):
            return run
        write_json(run / "cell.json", cell.model_dump())
        with mirror(tracking, name, f"{name}-{identity}", "train", cell.model_dump(), run) as wandb:
            train(cell, text.header.d_vocab, text.header.tokenizer_hash, windows, run, wandb.log, name)
            wandb.checkpoint(name, max((run / "checkpoints").iterdir()))
    return run


if __name__ == "__main__":
    with stage(int(os.environ.get("PATHSUM_THREADS", THREADS))):  # fewer beside other cells: the weights are the same
        name, values = sys.argv[1], params()
        if name not in values["cells"]:
            raise ValueError(f"expected a cell of params.yaml, got {name!r}; it has {', '.join(values['cells'])}")
        cell = load(CellConfig, values["cells"][name], f"cells.{name}")
        run = run_cell(name, cell, load(TrackingConfig, values["tracking"], "tracking"), wait=False)
        adopt(run, MODELS / name)
