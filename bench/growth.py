"""Measure how time and memory grow with each size: `python -m bench.growth`

A training step of the default recipe, the extraction of a small model, and the tokenizing of text. Sizes are varied one
at a time, each measurement in a process of its own; memory is the peak beyond that at the start. The exponent of y in
x is the slope of log y on log x, with the 95 % interval of Student's t.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import linregress, t

from bench.contenders import ours
from bench.measuring import alone, peak_mb, record, seconds
from bench.shapes import Shape, model_config
from pathsum.config import CellConfig, ExtractConfig, TokenizerConfig, TrainConfig
from pathsum.core.storage import read_lines
from pathsum.extraction.cell import extract
from pathsum.imported.extraction import eval_data
from pathsum.records.evaluation import Evaluation
from pathsum.text.bos import BOS
from pathsum.text.text_files import TextCorpus
from pathsum.text.tokenizing import tokenize_corpus
from pathsum.text.windows import Windows
from pathsum.training.loop import train
from pipelines.paths import ROOT, params

LIBRARY = "pathsum.imported.extraction"
STEP = Shape("step", n_layers=2, batch=8)
CELL = Shape("extract", n_layers=2, batch=2, n_heads=2, d_head=16, d_model=64, n_ctx=64, d_vocab=512)
FLOOR = Shape("tiny", n_layers=1, batch=1, n_heads=1, d_head=2, d_model=4, n_ctx=16, d_vocab=64)  # warms the libraries
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
    ("tokenize", "megabytes", (16, 24, 32, 48)),  # more text than the sample and one batch hold
)
HOW = ExtractConfig(
    held_out_windows=40, windows_per_document=1, windows=8, repeated_windows=8, exactness_windows=1, top_k=20,
    rotations=500,
)  # fmt: skip
LEAST = 1.5  # seconds of the measured training steps together


def step(shape: Shape) -> tuple[float, float]:
    """Return the shortest time of a training step (s), which other work on the machine affects least, and its peak
    memory beyond that of making the model (MiB)."""
    work, times = ours(shape), list[float]()
    before = peak_mb()
    work()
    while sum(times) < LEAST or len(times) < 3:
        times.append(seconds(work))
    return min(times), peak_mb() - before


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """Run ``work``. Return its time (s), and by how much it raises the peak memory of the process (MiB)."""
    before = peak_mb()
    return seconds(work), peak_mb() - before


def extraction(shape: Shape) -> tuple[float, float]:
    """Return the time (s) and peak memory (MiB) of the extraction of an untrained model, made in another process."""
    with tempfile.TemporaryDirectory() as folder:
        return alone(LIBRARY, extract_last, alone(LIBRARY, all_untrained, (FLOOR, shape), Path(folder)))


def all_untrained(shapes: Sequence[Shape], folder: Path) -> list[tuple[Any, ...]]:
    return [untrained(shape, folder / shape.name) for shape in shapes]


def extract_last(cells: Sequence[tuple[Any, ...]]) -> tuple[float, float]:
    return [cost(lambda cell=cell: extract(*cell)) for cell in cells][-1]  # type: ignore[misc]


def untrained(shape: Shape, run: Path) -> tuple[Any, ...]:
    """Make an untrained model in the folder ``run`` with one checkpoint and one evaluation."""
    recipe = TrainConfig(**{**params(ROOT)["train"], "tokens": 0, "eval_windows": 2, "device": "cpu"})
    cell = CellConfig(seed=0, model=model_config(shape), train=recipe)
    text = zipf(40 * shape.n_ctx, shape.d_vocab)
    text[:: shape.n_ctx] = BOS  # one document per window: intervals resample documents
    data = eval_data(text, [f"w{i}" for i in range(shape.d_vocab)], HOW, shape.n_ctx)
    data = replace(data, bigram_losses=torch.zeros(data.held_out[:, 1:].shape, dtype=torch.float64))  # of no model
    windows = Windows(text, shape.n_ctx)
    with redirect_stderr(io.StringIO()):
        train(cell, shape.d_vocab, data.tokenizer_hash, (windows, windows), run, lambda _: None, "growth")
    return "growth", cell, read_lines(run / "log.jsonl", Evaluation), sorted((run / "checkpoints").iterdir()), data, HOW


def tokenizing(megabytes: int) -> tuple[float, float]:
    """Return the time (s) and peak memory (MiB) of training a tokenizer and writing token files, for ``megabytes`` MB
    of text in documents of 100 kB."""
    words = [f"{'bcdfgklmnprst'[i % 13]}{'aeiou'[i % 5]}{i:x}" for i in range(5000)]
    config = TokenizerConfig(d_vocab=1024, train_bytes=1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        with path.open("w") as file:
            for i in range(megabytes * 10):
                document = " ".join(words[j] for j in zipf(25_000, 5000, seed=i))[:100_000]
                file.write(document + "\0")
        corpus = TextCorpus(
            source="text", name="made", validation_share=0.2, paths=(str(path),), separator="\\0", max_documents=10**9
        )
        return cost(lambda: tokenize_corpus(corpus, config, 256, Path(folder) / "tokens"))


def zipf(count: int, n: int, seed: int = 0) -> np.ndarray:
    """Sample ``count`` ids from 1 … n − 1 with frequencies proportional to 1/id."""
    weights = 1 / np.arange(1, n)
    return 1 + np.random.default_rng(seed).choice(n - 1, count, p=weights / weights.sum())


def measure(what: str, axis: str, size: int) -> tuple[float, float]:
    """Return the time (s) and peak memory (MiB) of ``what`` with the size ``axis`` set to ``size``."""
    if what == "tokenize":
        return alone(LIBRARY, tokenizing, size)
    if what == "extract":
        return extraction(replace(CELL, **{axis: size}))
    return alone(LIBRARY, step, replace(STEP, **{axis: size}))


def exponent(sizes: Sequence[float], measured: Sequence[float]) -> str:
    """Return the slope of log ``measured`` on log ``sizes``, with its 95 % interval."""
    line = linregress(np.log(sizes), np.log(measured))
    half = t.ppf(0.975, len(sizes) - 2) * line.stderr
    return f"{line.slope:.2f} ({line.slope - half:.2f} to {line.slope + half:.2f})"


def main() -> None:
    rows = {}
    for what, axis, sizes in AXES:
        time, memory = zip(*(measure(what, axis, size) for size in sizes), strict=True)
        rows[f"growth.{what}.{axis}"] = row = {
            "sizes": f"{sizes[0]:,} to {sizes[-1]:,}",
            "seconds": f"{time[0]:.3f} to {time[-1]:.3f}",
            "time": exponent(sizes, time),
            "MiB": f"{memory[0]:.0f} to {memory[-1]:.0f}",
        }
        print(what, axis, row, flush=True)
    record("growth.", rows)


if __name__ == "__main__":
    main()
