"""What the benchmarks share: time, peak memory, separate processes, and the file of results."""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import torch

from pathsum.training.device import describe

T = TypeVar("T")
RESULTS = Path(__file__).with_name("results.json")
THREADS = 2


def seconds(work: Callable[[], object]) -> float:
    """Run ``work`` and return its time in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_mb() -> float:
    """Return the peak memory of this process up to now, in MiB. Linux reports KiB and macOS bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def alone(preloaded: str, work: Callable[..., T], *args: object) -> T:
    """Run ``work`` in a new process with THREADS torch threads, so that its peak memory is measured alone."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preloaded])
    with ProcessPoolExecutor(1, mp_context=context, initializer=torch.set_num_threads, initargs=(THREADS,)) as pool:
        return pool.submit(work, *args).result()


def machine(device: str, threads: int = THREADS) -> str:
    """Return the conditions of a measurement: the name of the processor or GPU, the type of its products, the number of
    threads (CPU only), and the version of torch."""
    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, bfloat16 products, torch {torch.__version__}"
    return f"{describe(torch.device(device)).name}, threads: {threads}, torch {torch.__version__}"


def record(start: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace the rows of results.json whose names begin with ``start`` by ``rows``, so that all of them are from one
    run."""
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept = {name: row for name, row in found.items() if not name.startswith(start)}
    found = kept | {name: {"machine": machine("cpu"), **row} for name, row in rows.items()}
    RESULTS.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
