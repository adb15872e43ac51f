"""The training loop. A run that is killed at any moment and resumed ends with the same weights, bit for bit."""

import hashlib
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from pathsum.config import CellConfig, TrainConfig
from pathsum.core.manifest import sha256, write_manifest
from pathsum.core.storage import json_lines, read_lines, write_whole
from pathsum.core.store import finished
from pathsum.model.checkpoint import save_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.text.repeats import repeat_weights
from pathsum.text.windows import Windows, order, shuffled
from pathsum.training import ranks
from pathsum.training.device import choose, product_dtype
from pathsum.training.evaluate import evaluate, repeats
from pathsum.training.optimizer import optimizers, rate, set_rate
from pathsum.training.replay import RecordedStep
from pathsum.training.state import STATE, load_state, save_state
from pathsum.training.step import update
from pathsum.training.store import ABOUT, CHECKPOINTS, LOG, discard_damaged, log_until


class TrainingDiverged(ValueError):
    """Raised when the loss is NaN or infinite."""


def total_steps(cell: CellConfig) -> int:
    """Return the number of training steps for ``train.tokens`` tokens, rounded up."""
    return math.ceil(cell.train.tokens / (cell.train.batch * cell.model.n_ctx))


def evaluation_steps(steps: int, train: TrainConfig) -> list[int]:
    """Return the steps at which the model is evaluated, in ascending order."""
    linear = np.linspace(0, steps, train.n_linear_evals + 1)[1:]
    early = np.geomspace(1, max(linear[0], 1), train.n_log_evals)
    points = {0, steps, *np.rint(early).astype(int).tolist(), *np.rint(linear).astype(int).tolist()}
    return sorted(point for point in points if point <= steps)


def repeat_weight(tokens: int, train: TrainConfig) -> float:
    """Return the weight in the loss, after ``tokens`` tokens, of targets that complete a repeated pair."""
    left = min(1.0, max(0.0, 2 - 2 * tokens / train.repeat_tokens)) if train.repeat_tokens else 1.0
    return 1 + (train.repeat_weight - 1) * left


def train(
    cell: CellConfig,
    d_vocab: int,
    tokenizer_hash: str,
    windows: tuple[Windows, Windows],
    run: Path,
    log: Callable[[Evaluation], None],
    title: str,
    log_step: Callable[[int, float, float], None] = lambda *_: None,
) -> None:
    """Train the model with the configuration ``cell``, from the last state in ``run`` if there is one.

    ``windows`` are the training windows and the held-out windows. ``run`` is the folder to which all files are written.
    ``log`` is called with each evaluation after it is on disk, in a resumed run first with all earlier ones. ``title``
    names the model in errors. ``log_step`` is called after each step with the tokens seen, the loss of its batch (nats
    per token, weighted) and the learning rate as a share of its peak. Several processes (``ranks``) may train one
    model; only the main one evaluates and writes. A finished run is left as it is; if one of its files has changed, it
    is trained again. Raises TrainingDiverged if the loss is not finite, ValueError if the number of processes does not
    divide the batch size or if there is no GPU for ``train.device`` = "cuda".
    """
    train_windows, val_windows = windows
    if finished(run):
        return
    steps = total_steps(cell)
    if cell.train.batch % ranks.world_size():
        started = f"the {ranks.world_size()} processes that torchrun has started"
        raise ValueError(f"train.batch: expected a multiple of {started}, got {cell.train.batch}")
    device = choose(cell.train.device)
    model = Transformer(cell.model, d_vocab, torch.Generator().manual_seed(cell.seed)).to(device)
    opts = optimizers(model, cell.train)
    autocast = cell.train.autocast and product_dtype(device.type) == torch.bfloat16
    if ranks.is_main():
        discard_damaged(run)
    ranks.barrier()
    step, stored = load_state(run, model, opts)
    logged = log_until(run / LOG, step)
    ranks.barrier()  # every process reads the state before the main process writes the next one
    if ranks.is_main():
        write_whole(run / LOG, logged)
        for evaluation in read_lines(run / LOG, Evaluation):
            log(evaluation)  # after a kill, the tracker may lack some of them
    alone_on_gpu = device.type == "cuda" and ranks.world_size() == 1
    recorded = RecordedStep(model, opts, autocast) if alone_on_gpu and cell.train.repeat_weight == 1 else None
    evaluations = evaluation_steps(steps, cell.train)
    held_out = val_windows.batch(val_windows.spread(cell.train.eval_windows)).to(device)
    repeated, block = repeats(cell.model.n_ctx, train_windows.present(d_vocab))
    repeated = repeated.to(device)
    tokens_per_step = cell.train.batch * cell.model.n_ctx

    def record() -> None:
        nonlocal logged
        if not ranks.is_main():
            return
        evaluation = evaluate(model, held_out, repeated, block, step, step * tokens_per_step)
        on_repeats = evaluation.repeat_first_loss_nats + evaluation.repeat_second_loss_nats
        for loss in (evaluation.val_loss_nats, on_repeats):
            _require_finite(loss, step * tokens_per_step, title, run)
        checkpoint = f"{CHECKPOINTS}/{step:08d}.safetensors"
        save_checkpoint(run / checkpoint, model, tokenizer_hash)
        logged += json_lines([evaluation])
        write_whole(run / LOG, logged)
        stored.update({checkpoint: sha256(run / checkpoint), LOG: hashlib.sha256(logged).hexdigest()})
        save_state(run, model, opts, step, stored)
        log(evaluation)

    if step < 0:
        step = 0
        record()
    saved_at = time.monotonic()
    while step < steps:
        step += 1
        set_rate(opts, of_peak := rate(step, steps, cell.train))
        batch = train_windows.batch(order(cell.seed, step - 1, cell.train.batch, len(train_windows)))
        if cell.train.shuffled:
            batch = shuffled(batch, cell.seed, step - 1)
        share = ranks.share(batch).to(device)
        weight = repeat_weight((step - 1) * tokens_per_step, cell.train)
        weights = ranks.share(repeat_weights(batch, weight)).to(device) if weight != 1 else None
        loss = recorded(share) if recorded else update(model, opts, share, autocast, weights)
        _require_finite(loss, (step - 1) * tokens_per_step, title, run)
        log_step(step * tokens_per_step, loss, of_peak)
        if step in evaluations:
            record()
            saved_at = time.monotonic()
        elif ranks.is_main() and time.monotonic() - saved_at > cell.train.resume_every_seconds:
            save_state(run, model, opts, step, stored)
            saved_at = time.monotonic()
    if ranks.is_main():
        write_manifest(run, stored | {name: sha256(run / name) for name in ABOUT if (run / name).exists()}, run.name)
        (run / STATE).unlink(missing_ok=True)


def _require_finite(loss: float, tokens_seen: int, title: str, run: Path) -> None:
    if not math.isfinite(loss):
        raise TrainingDiverged(
            f"{title}: the loss is {loss} after {tokens_seen:,} tokens; the last finite state is kept in {run}. "
            "Lower train.lr_attention, train.lr_embedding or train.lr_unembedding, or use model.norm=rms"
        )
