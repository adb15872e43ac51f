"""Measure how time and memory of a training step and of an extraction grow with each size: `python -m bench.growth`"""

import io
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from scipy.stats import linregress, t

from bench.table import THREADS, machine, record
from bench.train_step import Shape, ours
from pathsum.config import CellConfig, ExtractConfig, TrainConfig
from pathsum.core.storage import read_lines
from pathsum.extraction.cell import extract
from pathsum.extraction.inputs import EvalData
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records.evaluation import Evaluation
from pathsum.text.bos import BOS
from pathsum.text.statistics import BigramRows, pair_counts
from pathsum.text.windows import Windows
from pathsum.training.loop import train
from pipelines.paths import ROOT, params

T = TypeVar("T")
STEP = Shape(n_layers=2)
CELL = Shape(n_layers=2, batch=2, n_heads=2, d_head=16, d_model=64, n_ctx=64, d_vocab=512)
FLOOR = Shape(n_layers=1, batch=1, n_heads=1, d_head=2, d_model=4, n_ctx=16, d_vocab=64)  # warms the libraries
AXES = (  # what is measured, name of the size, its values
    ("step", "d_vocab", (1024, 2048, 4096, 8192)),
    ("step", "d_model", (128, 256, 512, 1024)),
    ("step", "n_heads", (2, 4, 8, 16)),
    ("step", "n_layers", (1, 2, 4, 8)),
    ("step", "n_ctx", (128, 256, 512, 1024)),
    ("extract", "d_vocab", (512, 1024, 2048, 4096)),
    ("extract", "d_model", (32, 64, 128, 256)),
    ("extract", "n_heads", (2, 4, 6, 8)),
    ("extract", "n_layers", (1, 2, 3, 4)),
    ("extract", "n_ctx", (64, 128, 256, 512)),
)
HOW = ExtractConfig(
    held_out_windows=40, windows_per_document=1, windows=8, repeated_windows=8, exactness_windows=1, top_k=20,
    rotations=500,
)  # fmt: skip
LEAST = 1.5  # seconds of the measured training steps together


def alone(work: Callable[..., T], *args: object) -> T:
    """Run ``work`` in a new process with THREADS torch threads, so that its peak memory is measured alone."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pathsum.extraction.cell"])
    with ProcessPoolExecutor(1, mp_context=context, initializer=torch.set_num_threads, initargs=(THREADS,)) as pool:
        return pool.submit(work, *args).result()


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_mb() -> float:
    """Return the peak memory of this process up to now, in MiB. Linux reports KiB and macOS bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def step(shape: Shape) -> tuple[float, float]:
    """Return the shortest time of a training step (s), and its peak memory beyond that of making the model (MiB)."""
    work, times = ours(shape), list[float]()
    before = peak_mb()
    work()
    while sum(times) < LEAST or len(times) < 3:
        times.append(seconds(work))
    return min(times), peak_mb() - before


def extraction(shape: Shape) -> tuple[float, float]:
    """Return the time (s) and peak memory (MiB) of the extraction of an untrained model, made in another process."""
    with tempfile.TemporaryDirectory() as folder:
        models = [alone(untrained, shape, Path(folder, str(number))) for number, shape in enumerate((FLOOR, shape))]
        return alone(extract_last, models)


def extract_last(models: Sequence[tuple[Any, ...]]) -> tuple[float, float]:
    """Extract the models in order, and return the time (s) and additional peak memory (MiB) of the last."""
    for model in models:
        before = peak_mb()
        took = seconds(lambda model=model: extract(*model))  # type: ignore[misc]
    return took, peak_mb() - before


def untrained(shape: Shape, run: Path) -> tuple[Any, ...]:
    """Make an untrained model in the folder ``run`` with one checkpoint and one evaluation."""
    recipe = TrainConfig(**{**params(ROOT)["train"], "tokens": 0, "eval_windows": 2, "device": "cpu"})
    cell = CellConfig(seed=0, model=shape.config(), train=recipe)
    weights = 1 / np.arange(1, shape.d_vocab)  # frequencies of the ids after BOS
    text = 1 + np.random.default_rng(0).choice(len(weights), 40 * shape.n_ctx, p=weights / weights.sum())
    text[:: shape.n_ctx] = BOS  # one document per window: intervals resample documents
    windows = Windows(text, shape.n_ctx)
    held_out, counts = windows.batch(torch.arange(len(windows))), pair_counts(windows, shape.d_vocab)
    data = EvalData(
        held_out=held_out, documents=torch.arange(len(held_out)), windows=held_out[: HOW.windows],
        tuning=held_out[: HOW.windows], unigram=torch.from_numpy(np.asarray(counts.sum(axis=0)).ravel()).float(),
        bigram_counts=BigramRows(counts), words=[f"w{i}" for i in range(shape.d_vocab)], tokenizer_hash="",
        bigram_losses=torch.zeros(held_out[:, 1:].shape, dtype=torch.float64),  # of no model
    )  # fmt: skip
    with redirect_stderr(io.StringIO()):
        train(cell, shape.d_vocab, data.tokenizer_hash, (windows, windows), run, lambda _: None, "growth")
    checkpoints = [partial(load_checkpoint, path, "") for path in sorted((run / "checkpoints").iterdir())]
    return "growth", cell, read_lines(run / "log.jsonl", Evaluation), checkpoints, data, HOW


def measure(what: str, axis: str, size: int) -> tuple[float, float]:
    """Return the time (s) and peak memory (MiB) of ``what`` with the size ``axis`` set to ``size``."""
    if what == "extract":
        return extraction(replace(CELL, **{axis: size}))
    return alone(step, replace(STEP, **{axis: size}))


def exponent(sizes: Sequence[float], measured: Sequence[float]) -> str:
    """Return the slope of log ``measured`` on log ``sizes``, with the 95 % interval of Student's t."""
    line = linregress(np.log(sizes), np.log(measured))
    half = t.ppf(0.975, len(sizes) - 2) * line.stderr
    return f"{line.slope:.2f} ({line.slope - half:.2f} to {line.slope + half:.2f})"


def main() -> None:
    rows = {}
    for what, axis, sizes in AXES:
        times, memory = zip(*(measure(what, axis, size) for size in sizes), strict=True)
        rows[f"growth.{what}.{axis}"] = row = {
            "machine": machine("cpu"),
            "sizes": f"{sizes[0]:,} to {sizes[-1]:,}",
            "seconds": f"{times[0]:.3f} to {times[-1]:.3f}",
            "time": exponent(sizes, times),
            "MiB": f"{memory[0]:.0f} to {memory[-1]:.0f}",
        }
        print(what, axis, row, flush=True)
    record("growth.", rows)


if __name__ == "__main__":
    main()
