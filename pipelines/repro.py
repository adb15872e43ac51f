"""`make repro` and `make sweep`: every result that is out of date, JOBS cells at a time, then the report.

Each cell is a `dvc repro` of its own beside the others; DVC's locks keep dvc.lock whole. Without JOBS there are as many
as cores: the default grid takes 27 minutes on two that take 32 one cell at a time (reports/log.md). A cell that fails
stops neither the others nor the report, which says what it is without; the exit code says so too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path
from queue import SimpleQueue

from pipelines.paths import CIRCUITS, THREADS, cores, params, stage

SHARED = {"check", "tokenize", "statistics"}  # what every cell needs
CONTAINER = Path("/sys/fs/cgroup/memory.max")  # bytes, where Linux limits them


def dvc(*arguments: str, threads: int = THREADS, line: int = 0, out: int | None = None) -> int:
    """Run DVC and return its exit code; progress goes to ``line`` of a terminal. DVC handles an interrupt itself, which
    leaves no lock."""
    extra = {"PATHSUM_THREADS": str(threads)} | ({"TQDM_POSITION": str(line)} if line and sys.stderr.isatty() else {})
    with subprocess.Popen(["dvc", *arguments], stdout=out, env=os.environ | extra) as run:
        return run.wait()


def at_a_time() -> int:
    """Return the default number of models at a time: one per core with 3.5 GiB (a default model takes up to 3); one on
    a GPU."""
    import torch  # takes two seconds: only where there is something to do

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if CONTAINER.exists() and (most := CONTAINER.read_text().strip()).isdecimal():  # else "max"
        memory = min(memory, int(most))
    return 1 if torch.cuda.is_available() else max(1, min(cores(), memory // (7 * 2**29)))


def stale() -> set[str]:
    """Return the stages that are not up to date."""
    found = subprocess.run(["dvc", "status", "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        sys.exit(found.returncode)  # DVC has said why
    return set(json.loads(found.stdout))


def cells(stages: set[str]) -> list[str]:
    """Return the declared cells with a stage among ``stages``, the longest first."""
    declared = params()["cells"]
    found = [name for name in declared if stages & {f"train@{name}", f"extract@{name}"}]
    return sorted(found, key=lambda name: [-declared[name]["model"][size] for size in ("n_layers", "n_heads")])


def side_by_side(names: list[str], jobs: int) -> int:
    """Train and extract these cells, ``jobs`` at a time (0: as many as fit), sharing the cores; return 1 if any
    failed."""
    if not names:
        return 0
    jobs = max(1, min(jobs or at_a_time(), len(names)))
    threads = max(1, min(THREADS, cores() // jobs))
    lines: SimpleQueue[int] = SimpleQueue()
    for line in range(jobs):
        lines.put(line)

    def make(name: str) -> tuple[str, int]:
        stages, line = (f"train@{name}", f"extract@{name}"), lines.get()
        command = ("--wait-for-lock", "repro", "--single-item", *stages)
        code = dvc(*command, threads=threads, line=line, out=subprocess.DEVNULL if jobs > 1 else None)
        lines.put(line)
        return name, code

    failed = False
    with ThreadPool(jobs) as pool:  # an interrupt ends the pool: no further cell is begun
        for done, (name, code) in enumerate(pool.imap_unordered(make, names), start=1):
            print(f"{name}: {'failed' if code else 'made'} ({done} of {len(names)})", file=sys.stderr)
            failed |= code != 0
    return int(failed)


def report_without(failed: list[str]) -> None:
    """Judge and report the other cells, without old records of the failed ones."""
    for name in failed:
        shutil.rmtree(CIRCUITS / name, ignore_errors=True)
    CIRCUITS.mkdir(exist_ok=True)
    made = dvc("repro", "--single-item", "calibrate", "verify", "report") == 0
    raise ValueError(
        f"expected {len(params()['cells'])} cells, got all but {', '.join(failed)}, whose errors are above; "
        + ("the report is of the others and says so. " if made else "nor could the report be made of the others. ")
        + "Mend the cause and run the same command again: only what is missing is made"
    )


def models(jobs: int) -> int:
    """Train and extract every model that is out of date; return the exit code."""
    left = stale()
    if left & SHARED and (code := dvc("repro", "statistics")):
        return code
    return side_by_side(cells(stale() if left & SHARED else left), jobs)


def repro(jobs: int) -> int:
    """Make all that is out of date; return the exit code."""
    if not stale():
        print("Data and pipelines are up to date.")  # DVC's words
        return 0
    code = models(jobs) or dvc("repro")
    if code and not (left := stale()) & SHARED and (failed := cells(left)):
        report_without(failed)
    return code


if __name__ == "__main__":
    with stage(threads=0):
        given = [argument for argument in sys.argv[1:] if argument != "--models"]
        if given and (not given[0].isdecimal() or int(given[0]) < 1):
            raise ValueError(f"JOBS: expected a number of models to make at a time, got {given[0]!r}")
        sys.exit((models if "--models" in sys.argv else repro)(int(given[0]) if given else 0))
