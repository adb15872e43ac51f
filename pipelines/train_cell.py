"""Stage `train`: train every model of the grid that the store lacks, and link all of them to models/.

python -m pipelines.train_cell L2H4S5 trains this model only; several processes can share it:

    torchrun --nproc-per-node 2 -m pipelines.train_cell L2H4S5
"""

import argparse
import functools
import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from pathsum.config import CellConfig, TrackingConfig, load, unknown
from pathsum.core import store
from pathsum.core.storage import read_json, read_lines, write_json
from pathsum.core.threads import use_threads
from pathsum.records.evaluation import Evaluation
from pathsum.text.tokens import TokenHeader, read_tokens
from pathsum.text.windows import HeldOut, Windows
from pathsum.training import ranks
from pathsum.training.device import choose, describe
from pathsum.training.loop import train
from pathsum.training.store import CHECKPOINTS, LOG
from pathsum.training.tracker import Run, mirror, result, run_id, tags
from pipelines import grid, pool
from pipelines.paths import MODELS, RUNS, TOKENS, params, section, stage
from pipelines.progress import Told

CODE = "pathsum.training.loop"


def run_of(cell: CellConfig) -> Path:
    """Return the folder of this model in the store, whether or not it has been trained."""
    train, tuning = (read_json(TOKENS / cell.text / f"{part}.json", TokenHeader) for part in ("train", "tuning"))
    data = (train.token_hash, tuning.token_hash, train.tokenizer_hash)
    return RUNS / store.fingerprint(CODE, cell=cell.model_dump(exclude={"text"}), data=data)


def run_cell(cell_name: str, cell: CellConfig, tracking: TrackingConfig, overrides: Sequence[str] = ()) -> Path:
    """Train the model of configuration ``cell`` in the store, unless it is finished there."""
    name, run, tokens = " ".join([cell_name, *overrides]), run_of(cell), TOKENS / cell.text
    text, tuning = read_tokens(tokens / "train.bin"), read_tokens(tokens / "tuning.bin")
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
                print(f"{name}: evaluated on all {found} windows, fewer than train.eval_windows", file=sys.stderr)
            write_json(run / "cell.json", cell.model_dump())
            named = cell.text or section(params(), "corpus", "name")
            write_json(run / "text.json", {"name": named, "hash": text.header.corpus_hash})
            shutil.copyfile(tokens / "tokenizer.json", run / "tokenizer.json")
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


def set_threads() -> None:
    """Set the number of threads of this process, on which the weights do not depend."""
    use_threads(max(1, pool.threads() // ranks.local_processes()))


def make(name: str) -> None:
    """Train the model ``name`` of params.yaml in the store."""
    set_threads()
    values = params()
    if name not in (cells := grid.models(values)):
        raise ValueError(unknown(name, cells, "model in params.yaml"))
    cell, tracking = cells[name], load(TrackingConfig, section(values, "tracking"), "tracking")
    run_cell(name, cell, tracking.model_copy(update={"corpus": cell.text or tracking.corpus}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="of params.yaml; default: all, each one a job of conf/launch.yaml")
    given = parser.parse_args()
    with ranks.process_group(), stage(threads=0):
        if given.model:
            make(given.model)
        else:
            runs = {name: run_of(cell) for name, cell in grid.models(params()).items()}
            pool.for_each("pipelines.train_cell", [name for name, run in runs.items() if not store.finished(run)])
            store.publish(MODELS, runs)
