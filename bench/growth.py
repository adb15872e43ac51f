"""Measure how time and memory grow with each size: `python -m bench.growth`

Three things are measured: a training step of the default recipe, the extraction of a small model, and the tokenizing of
text. Sizes are varied one at a time. Each measurement runs in a separate process, and its memory is the peak beyond the
memory at the start. The exponent of y in x is the slope of log y on log x by least squares. Two more exponents are
listed: that of the operations or bytes that a step needs, counted at the same sizes, and that in the limit of large
sizes, where one term dominates. At sizes that take a minute or less, the other terms still take most of the time.
"""

from __future__ import annotations

import io
import json
import math
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from bench.contenders import ours
from bench.measuring import alone, peak_mb, seconds
from bench.memory import training_bytes
from bench.shapes import Shape, flop, model_config
from experiments.fits import slopes
from pathsum.config import CellConfig, ExtractConfig, TokenizerConfig, TrainConfig
from pathsum.core.storage import read_lines
from pathsum.corpora.text_files import TextCorpus
from pathsum.corpora.tokenizing import tokenize_corpus
from pathsum.data.bos import BOS
from pathsum.data.windows import Windows
from pathsum.extraction.cell import extract
from pathsum.imported.extraction import eval_data
from pathsum.probes.evaluation import Evaluation
from pathsum.training.device import product_dtype
from pathsum.training.loop import train
from pipelines.paths import ROOT, params

HERE, LIBRARY = Path(__file__).parent, "pathsum.imported.extraction"
STEP = Shape("step", n_layers=2, batch=8)
CELL = Shape("extract", n_layers=2, batch=2, n_heads=2, d_head=16, d_model=64, n_ctx=64, d_vocab=512)
# The time and memory of this model are those of threads and kernels, which do not grow with the sizes.
FLOOR = Shape("tiny", n_layers=1, batch=1, n_heads=1, d_head=2, d_model=4, n_ctx=16, d_vocab=64)
AXES = (  # what is measured, name of the size, its values, and the exponents of time and memory in the limit
    ("step", "d_vocab", (1024, 2048, 3072, 4096, 8192), (1, 1)),
    ("step", "d_model", (128, 256, 384, 512, 1024), (1, 1)),
    ("step", "n_heads", (2, 4, 6, 8, 16), (1, 1)),
    ("step", "n_layers", (1, 2, 3, 4, 8), (1, 1)),
    ("step", "n_ctx", (128, 256, 384, 512, 1024), (2, 2)),
    ("extract", "d_vocab", (512, 1024, 2048, 4096), (2, 1)),  # time: pairs of tokens; memory: a block of counts
    ("extract", "d_model", (32, 64, 128, 256), (3, 2)),  # a random rotation
    ("extract", "n_heads", (2, 4, 6, 8), (2, 2)),  # every pair of heads on every window
    ("extract", "n_layers", (1, 2, 3, 4), (math.inf, math.inf)),  # (1 + heads) ^ layers paths
    ("extract", "n_ctx", (64, 128, 256, 512), (2, 2)),  # patterns
    ("tokenize", "megabytes", (16, 24, 32, 48), (1, 0)),  # more text than the sample and one batch hold
)
HOW = ExtractConfig(
    held_out_windows=40, windows_per_document=1, windows=8, repeated_windows=8, exactness_windows=1, top_k=20,
    rotations=500,
)  # fmt: skip
SECONDS = 1.5  # least total time of the measured training steps


def step(shape: Shape) -> tuple[float, float]:
    """Return the shortest time of a training step, in seconds, and the peak memory beyond that of making the model, in
    MiB.

    Other work on the machine affects the shortest time least.
    """
    work, times = ours(shape), list[float]()
    before = peak_mb()
    work()
    while sum(times) < SECONDS or len(times) < 3:
        times.append(seconds(work))
    return min(times), peak_mb() - before


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """Run ``work``. Return its time in seconds, and by how much it raises the peak memory of the process, in MiB."""
    before = peak_mb()
    return seconds(work), peak_mb() - before


def extraction(shape: Shape) -> tuple[float, float]:
    """Return the time (s) and peak memory (MiB) of the extraction of an untrained model.

    Another process makes the model, because the peak memory of initialization could exceed that of extraction.
    """
    with tempfile.TemporaryDirectory() as folder:
        return alone(LIBRARY, extract_last, alone(LIBRARY, all_untrained, (FLOOR, shape), Path(folder)))


def all_untrained(shapes: Sequence[Shape], folder: Path) -> list[tuple[Any, ...]]:
    """Make an untrained model of each shape in ``folder``. Return the arguments of ``extract`` for each."""
    return [untrained(shape, folder / shape.name) for shape in shapes]


def extract_last(cells: Sequence[tuple[Any, ...]]) -> tuple[float, float]:
    """Extract all ``cells`` in turn, and return the cost of the last. The others warm up the libraries."""
    return [cost(lambda cell=cell: extract(*cell)) for cell in cells][-1]  # type: ignore[misc]


def untrained(shape: Shape, run: Path) -> tuple[Any, ...]:
    """Make an untrained model in the folder ``run`` with one checkpoint and one evaluation. Return the arguments of
    ``extract`` for it."""
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
    """Return the time (s) and peak memory (MiB) of training a tokenizer and writing token files.

    The text has ``megabytes`` MB, in documents of 100 kB.
    """
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


def measure(what: str, axis: str, size: int, floor_mb: float) -> dict[str, Any]:
    """Measure ``what`` with the size ``axis`` set to ``size``. Return a row of growth.csv, with ``peak_mb`` in MiB.

    For a training step, ``floor_mb`` (MiB), the memory of the smallest model, is subtracted, and the row has the
    operations and bytes by count.
    """
    counted: dict[str, float | None] = {"flop": None, "bytes": None}
    if what == "step":
        shape = replace(STEP, **{axis: size})
        time, peak = alone(LIBRARY, step, shape)
        peak, width = peak - floor_mb, product_dtype("cpu").itemsize
        counted = {"flop": flop(shape), "bytes": training_bytes(shape, width)}
    elif what == "extract":
        time, peak = extraction(replace(CELL, **{axis: size}))
    else:
        time, peak = alone(LIBRARY, tokenizing, size)
    return {"what": what, "axis": axis, "size": size, "seconds": time, "peak_mb": peak, **counted}


def fit(found: Sequence[dict[str, Any]], of: str, count: str, limit: float) -> dict[str, Any]:
    """Fit the exponent of the column ``of`` in the size, with its 95 % interval (Student's t), to the rows of one axis.

    ``counted`` in the result is the exponent of the column ``count``, or None if that column is empty. ``limit`` is the
    exponent in the limit of large sizes. In the result, None stands for growth faster than any power.
    """
    x = np.log([m["size"] for m in found])
    exponent, low, high = (round(v, 2) + 0.0 for v in slopes(np.log([m[of] for m in found]), x)[0])
    counts = [m[count] for m in found]
    counted = None if None in counts else round(slopes(np.log(counts), x)[0][0], 2)
    about = {name: found[0][name] for name in ("what", "axis")} | {"of": of}
    about |= {"exponent": exponent, "low": low, "high": high, "counted": counted}
    return about | {"limit": None if math.isinf(limit) else limit}


def main() -> None:
    floor_mb = alone(LIBRARY, step, FLOOR)[1]
    measured, fits = [], []
    for what, axis, sizes, (time, memory) in AXES:
        found = []
        for size in sizes:
            m = measure(what, axis, size, floor_mb)
            print(f"{what:9} {axis:9} {size:6}  {m['seconds']:8.3f} s  {m['peak_mb']:8.1f} MB", flush=True)
            found.append(m)
        measured += found
        fits += [fit(found, "seconds", "flop", time), fit(found, "peak_mb", "bytes", memory)]
    rounded = pd.DataFrame(measured).round({"seconds": 4, "peak_mb": 1})
    rounded.to_csv(HERE / "growth.csv", index=False, lineterminator="\n")
    (HERE / "growth.json").write_text(json.dumps(fits, indent=1) + "\n")


if __name__ == "__main__":
    main()
