"""`make repro` and `make sweep JOBS=N`: every result that is out of date, N cells at a time, then the report.

Each cell is a `dvc repro` of its own beside the others; DVC's locks keep dvc.lock whole. A cell that fails stops
neither the others nor the report, which says what it is without; the exit code says so too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from multiprocessing.pool import ThreadPool

from pipelines.paths import CIRCUITS, THREADS, params, stage

SHARED = {"check", "tokenize", "statistics"}  # what every cell needs


def dvc(*arguments: str, threads: int = THREADS, out: int | None = None) -> int:
    """DVC's exit code. An interrupt is left to it, so that it leaves no lock."""
    with subprocess.Popen(["dvc", *arguments], stdout=out, env={**os.environ, "PATHSUM_THREADS": str(threads)}) as run:
        return run.wait()


def stale() -> set[str]:
    """The stages that are not up to date."""
    found = subprocess.run(["dvc", "status", "--json"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return set(json.loads(found))


def cells(stages: set[str]) -> list[str]:
    """The declared cells that have a stage among ``stages``."""
    return [name for name in params()["cells"] if stages & {f"train@{name}", f"extract@{name}"}]


def side_by_side(names: list[str], jobs: int) -> int:
    """Train and extract these cells, ``jobs`` at a time, each on its part of the machine; 1 if any failed."""
    threads = max(1, min(THREADS, (os.cpu_count() or 1) // jobs))

    def make(name: str) -> tuple[str, int]:
        stages = f"train@{name}", f"extract@{name}"
        command = ("--wait-for-lock", "repro", "--single-item", *stages)
        return name, dvc(*command, threads=threads, out=subprocess.DEVNULL)

    failed = False
    with ThreadPool(jobs) as pool:  # an interrupt ends the pool: no further cell is begun
        for done, (name, code) in enumerate(pool.imap_unordered(make, names), start=1):
            print(f"{name}: {'failed' if code else 'made'} ({done} of {len(names)})", file=sys.stderr)
            failed |= code != 0
    return int(failed)


def report_without(failed: list[str]) -> None:
    """Judge and report the other cells. What an earlier configuration left of the failed ones is not theirs."""
    for name in failed:
        shutil.rmtree(CIRCUITS / name, ignore_errors=True)
    CIRCUITS.mkdir(exist_ok=True)
    dvc("repro", "--single-item", "verify", "report")
    raise ValueError(
        f"expected {len(params()['cells'])} cells, got all but {', '.join(failed)}, whose errors are above; the report "
        "is of the others and says so. Mend the cause and run the same command again: only what is missing is made"
    )


def repro(jobs: int) -> int:
    """The exit code of what the module's first line says."""
    if jobs == 1:
        code = dvc("repro", "--keep-going")
    else:
        code = dvc("repro", "statistics") or side_by_side(cells(stale()), jobs) or dvc("repro")
    if code and not (left := stale()) & SHARED and (failed := cells(left)):
        report_without(failed)
    return code


if __name__ == "__main__":
    with stage():
        if not sys.argv[1].isdecimal() or (jobs := int(sys.argv[1])) < 1:
            raise ValueError(f"JOBS: expected a number of cells to make at a time, got {sys.argv[1]!r}")
        try:
            sys.exit(repro(jobs))
        except KeyboardInterrupt:
            sys.exit(130)
