"""Growth of time and memory with each size: `python -m bench.growth`

A training step of the default recipe and the extraction of a cell, one size after another taken away from a base cell,
and the tokenizing of more and more text. Every measurement has its own process, so that its peak memory is its own:
what it takes beyond what the process had before. Exponents are slopes of log y on log x by least squares. Beside them
stand those of the operations and bytes which a step is counted to need at the same sizes, and that of the limit, where
one term has outgrown all others: at sizes that a minute allows, most of the time is spent on the other terms.
"""

from __future__ import annotations

import csv
import io
import json
import math
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import pipelines  # noqa: F401 (first: threads that wait must not spin)

import numpy as np  # isort: skip
import torch  # isort: skip
import yaml  # isort: skip

from experiments.fits import slopes  # isort: skip
from bench.memory import training_bytes  # isort: skip
from bench.peak import peak_mb  # isort: skip
from bench.train_step import PARAMS, THREADS, Shape, model_config, ours, products  # isort: skip
from pathsum.config import CellConfig, ExtractConfig, TextCorpus, TokenizerConfig, TrainConfig  # isort: skip
from pathsum.data.bos import BOS  # isort: skip
from pathsum.corpora.tokenizing import tokenize_corpus  # isort: skip
from pathsum.data.windows import Windows  # isort: skip
from pathsum.probes.evaluation import Evaluation  # isort: skip
from pathsum.extraction.cell import extract  # isort: skip
from pathsum.imported.extraction import evidence  # isort: skip
from pathsum.core.storage import read_lines  # isort: skip
from pathsum.training.loop import train  # isort: skip

T = TypeVar("T")
HERE = Path(__file__).parent
TINY = {"batch": 1, "n_heads": 1, "d_head": 2, "d_model": 4, "n_ctx": 16, "d_vocab": 64}
STEP = Shape("step", n_layers=2, batch=8)
STEP_SIZES = {
    "d_vocab": (1024, 2048, 4096, 8192),
    "d_model": (128, 256, 512, 1024),
    "n_heads": (2, 4, 8, 16),
    "n_layers": (1, 2, 4, 8),
    "n_ctx": (128, 256, 512, 1024),
}
CELL = Shape("extract", n_layers=2, batch=2, n_heads=2, d_head=16, d_model=64, n_ctx=64, d_vocab=512)
CELL_SIZES = {
    "d_vocab": (1024, 2048, 4096, 8192),
    "d_model": (64, 128, 256, 512),
    "n_heads": (2, 4, 8, 12),
    "n_layers": (1, 2, 3, 4),
    "n_ctx": (128, 256, 512, 1024),
}
HOW = ExtractConfig(
    held_out_windows=40,
    windows_per_document=1,
    windows=8,
    repeated_windows=8,
    certificate_windows=1,
    top_k=20,
    rotations=500,
)
TEXT_MB = (32, 64, 128)  # from where on the spool, the sample and a batch are full
FLOOR = Shape("tiny", n_layers=1, **TINY)  # threads and kernels, whatever the size: no part of what grows
SECONDS = 1.5  # of training steps
LIMITS = {  # exponents of time and of memory, where a term has outgrown the others
    "step": {"d_vocab": (1, 1), "d_model": (1, 1), "n_heads": (1, 1), "n_layers": (1, 1), "n_ctx": (2, 2)},
    "extract": {
        "d_vocab": (2, 1),  # every pair of tokens that occur, and all rows of counts, a block at a time
        "d_model": (3, 2),  # a random rotation
        "n_heads": (2, 2),  # every pair of heads, on every window; score paths are pairs too
        "n_layers": (math.inf, math.inf),  # (1 + heads) ^ layers paths
        "n_ctx": (2, 2),  # patterns
    },
    "tokenize": {"megabytes": (1, 0)},
}


@dataclass(frozen=True)
class Measured:
    """One size of one thing, all else as in the base."""

    what: str
    axis: str
    size: int
    seconds: float
    peak_mb: float  # beyond what the process had before, and what the smallest model takes
    flop: float | None  # of the step's matrix products, counted
    bytes: float | None  # that a step needs, counted


@dataclass(frozen=True)
class Fit:
    """An exponent, its 95 % interval (Student's t), and what it should be."""

    what: str
    axis: str
    of: str  # seconds or peak_mb
    exponent: float
    low: float
    high: float
    counted: float | None
    limit: float | None  # None: faster than any power


def step(shape: Shape) -> tuple[float, float]:
    """Median seconds of a training step, and peak memory."""
    work, times = ours(shape), []
    before = peak_mb()
    work()
    while sum(times) < SECONDS or len(times) < 3:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), peak_mb() - before


def extraction(shape: Shape) -> tuple[float, float]:
    """Seconds and peak memory of taking an untrained cell apart, made in a process whose peak does not hide its own."""
    with tempfile.TemporaryDirectory() as folder:
        cells = [alone(untrained, s, Path(folder) / s.name) for s in (FLOOR, shape)]
        return alone(extract_last, cells)


def extract_last(cells: Sequence[tuple[Any, ...]]) -> tuple[float, float]:
    """Seconds and peak memory of the last; those before it warm libraries up."""
    for cell in cells:
        before, start = peak_mb(), time.perf_counter()
        extract(*cell)
    return time.perf_counter() - start, peak_mb() - before


def untrained(shape: Shape, run: Path) -> tuple[Any, ...]:
    """Return the arguments of ``extract`` for an untrained cell: one checkpoint in ``run``, one evaluation."""
    recipe = yaml.safe_load(PARAMS.read_text())["train"]
    training = TrainConfig(**{**recipe, "tokens": 0, "eval_windows": 2, "device": "cpu"})
    cell = CellConfig(seed=0, model=model_config(shape), train=training)
    text = zipf(40 * shape.n_ctx, shape.d_vocab)
    text[:: shape.n_ctx] = BOS  # a document a window: intervals resample documents
    seen = evidence(text, [f"w{i}" for i in range(shape.d_vocab)], HOW, shape.n_ctx)
    windows = Windows(text, shape.n_ctx)
    with redirect_stderr(io.StringIO()):
        train(cell, shape.d_vocab, seen.tokenizer_hash, (windows, windows), run, lambda _: None, "growth")
    return "growth", cell, read_lines(run / "log.jsonl", Evaluation), sorted((run / "checkpoints").iterdir()), seen, HOW


def tokenizing(megabytes: int) -> tuple[float, float]:
    """Seconds and peak memory of turning so much text, in documents of 100 kB, into a tokenizer and token files."""
    words = [f"{'bcdfgklmnprst'[i % 13]}{'aeiou'[i % 5]}{i:x}" for i in range(5000)]
    corpus = TextCorpus(
        source="text", name="grown", validation_share=0.2, paths=("*",), separator="\\0", max_documents=10**9
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        with path.open("w") as file:
            for i in range(megabytes * 10):
                document = " ".join(words[j] for j in zipf(25_000, 5000, seed=i))[:100_000]
                file.write(document + "\0")
        corpus = corpus.model_copy(update={"paths": (str(path),)})
        before, start = peak_mb(), time.perf_counter()
        tokenize_corpus(corpus, TokenizerConfig(d_vocab=1024, train_bytes=1_000_000), 256, Path(folder) / "tokens")
        return time.perf_counter() - start, peak_mb() - before


def zipf(count: int, n: int, seed: int = 0) -> np.ndarray:
    """Ids 1 … n − 1 whose frequency falls off as 1/rank."""
    weights = 1 / np.arange(1, n)
    return 1 + np.random.default_rng(seed).choice(n - 1, count, p=weights / weights.sum())


def alone(work: Callable[..., T], *args: object) -> T:
    """Run ``work`` in a new process, forked from one that has imported all and computed nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bench.growth"])
    with ProcessPoolExecutor(1, mp_context=context, initializer=torch.set_num_threads, initargs=(THREADS,)) as pool:
        return pool.submit(work, *args).result()


def measure(what: str, axis: str, size: int, floor_mb: float) -> Measured:
    """Of one size; a step's memory beyond ``floor_mb``, that of the smallest model."""
    if what == "step":
        shape = replace(STEP, **{axis: size})
        seconds, peak = alone(step, shape)
        flop = 2.0 * sum(b * n * k * m for b, n, k, m in products(shape))
        return Measured(what, axis, size, seconds, peak - floor_mb, flop, training_bytes(shape))
    seconds, peak = extraction(replace(CELL, **{axis: size})) if what == "extract" else alone(tokenizing, size)
    return Measured(what, axis, size, seconds, peak, None, None)


def fit(found: Sequence[Measured], of: str, limit: float) -> Fit:
    """Of the measurements of one thing along one axis."""
    x = np.log([m.size for m in found])
    exponent, low, high = slopes(np.log([getattr(m, of) for m in found]), x)[0]
    counts = [m.flop if of == "seconds" else m.bytes for m in found]
    counted = None if None in counts else slopes(np.log(counts), x)[0][0]
    known = None if math.isinf(limit) else limit
    return Fit(found[0].what, found[0].axis, of, exponent, low, high, counted, known)


def main() -> None:
    axes: list[tuple[str, str, tuple[int, ...]]] = [
        *(("step", axis, sizes) for axis, sizes in STEP_SIZES.items()),
        *(("extract", axis, sizes) for axis, sizes in CELL_SIZES.items()),
        ("tokenize", "megabytes", TEXT_MB),
    ]
    floor_mb = alone(step, FLOOR)[1]
    everything: list[Measured] = []
    fits: list[Fit] = []
    for what, axis, sizes in axes:
        found = []
        for size in sizes:
            found.append(measure(what, axis, size, floor_mb))
            print(f"{what:9} {axis:9} {size:6}  {found[-1].seconds:8.3f} s  {found[-1].peak_mb:8.1f} MB", flush=True)
        everything += found
        fits += [fit(found, of, limit) for of, limit in zip(("seconds", "peak_mb"), LIMITS[what][axis], strict=True)]
    with (HERE / "growth.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Measured)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(m) | {"seconds": f"{m.seconds:.4f}", "peak_mb": f"{m.peak_mb:.1f}"} for m in everything)
    rows: list[dict[str, Any]] = [
        {k: round(v, 2) if isinstance(v, float) else v for k, v in asdict(f).items()} for f in fits
    ]
    (HERE / "growth.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
