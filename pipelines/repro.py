"""`make repro` and `make sweep`: compute every result that is out of date, JOBS models at a time, and then the report.

python -m pipelines.repro [JOBS] [--models | --report | --tokens]

--models computes the models without the report. --report writes the report again from stored records. --tokens writes
only the tokens.

Each model has its own `dvc repro` process, and DVC's locks protect dvc.lock. JOBS is by default as many as cores and
memory allow, or one on a GPU: on two cores, a grid of 13 models took 27 minutes, and 32 minutes one model at a time
(docs/log/speed.md). If a model fails, the other models and the report are still made. The report lists the missing
models, and the exit code is not 0.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.pool import ThreadPool
from pathlib import Path
from queue import SimpleQueue

from pathsum.core.locks import held
from pipelines.dvc_files import OUTPUTS, TMP, drop_damaged, mend, name_committed, name_strangers, note_outputs
from pipelines.paths import (
    CIRCUITS,
    GRAPH,
    SO_FAR,
    THREADS,
    TOKENS,
    cores,
    params,
    read_yaml,
    section,
    show_help,
    stage,
)
from pipelines.progress import Progress

SHARED = {"check", "tokenize", "statistics"}  # stages that every model needs
DVC = (sys.executable, "-m", "pipelines.dvc_process")
LOCK = TMP / "repro.lock"  # of the process that computes results in this folder
REPORT_LOCK = TMP / "report.lock"  # of the process that writes verdicts and report
LIMITS = (  # of the shell: option of `ulimit`, its unit, and what a run needs at least, in this unit
    (resource.RLIMIT_FSIZE, "f", 2**10, 2**16, "KiB in a file"),  # DVC would report an error of its database
    (resource.RLIMIT_NOFILE, "n", 1, 2**8, "open files"),  # W&B would wait for ever
    (resource.RLIMIT_AS, "v", 2**10, 2**21, "KiB of memory"),  # torch could not be imported
    (resource.RLIMIT_STACK, "s", 2**10, 2**11, "KiB of stack"),  # Python would crash
    (resource.RLIMIT_CPU, "t", 1, 3600, "seconds of processor time"),  # the system would end a stage without a message
)
CONTAINER = Path("/sys/fs/cgroup/memory.max")  # memory limit of a Linux container, in bytes


def dvc(*arguments: str, threads: int = THREADS, line: int = 0, out: int | None = None) -> int:
    """Run DVC with ``arguments`` and return its exit code. The files of DVC are repaired before and after.

    Stages use ``threads`` torch threads, and draw their progress bar in the terminal line ``line``. ``out`` is the
    standard output of DVC, as in ``subprocess.run``.
    """
    mend()
    extra = {"PATHSUM_THREADS": str(threads), "SHELL": "/bin/sh"}  # a user's own may be one that only fails
    if line and sys.stderr.isatty():
        extra["TQDM_POSITION"] = str(line)
    code = subprocess.run([*DVC, *arguments], stdout=out, env=os.environ | extra, check=False).returncode
    mend()
    return told(code)


def write(*arguments: str) -> int:
    """Run `dvc repro` with ``arguments`` while no other process writes verdicts or the report. Return the exit code."""
    with held(REPORT_LOCK, waiting):
        return dvc("repro", *arguments)


def told(code: int) -> int:
    """Return the exit ``code`` of DVC. If it is negative, a signal ended DVC, and a message says so."""
    if code < 0:
        print(
            f"pathsum: DVC was ended by signal {-code}, as the system does when memory is short (then use JOBS=1); run "
            "the same command again to go on",
            file=sys.stderr,
        )
    return code


def at_a_time() -> int:
    """Return the default number of models that are processed at a time.

    With a GPU it is one. Otherwise it is the number of cores, but at most one per 2.5 GiB of memory (a model of the
    default grid needs 1.8 GiB).
    """
    import torch  # takes two seconds, so it is imported only if a result is out of date

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if CONTAINER.exists() and (most := CONTAINER.read_text().strip()).isdecimal():  # "max" if there is no limit
        memory = min(memory, int(most))
    return 1 if torch.cuda.is_available() else max(1, min(cores(), memory // (5 * 2**29)))


def stale() -> set[str]:
    """Repair the files of DVC, and return the stages that are out of date. If DVC fails, exit with its code."""
    mend()
    drop_damaged()
    return status()


def status() -> set[str]:
    """Return the stages that are out of date, without repairing files first. If DVC fails, exit with its code."""
    found = subprocess.run(
        [*DVC, "--wait-for-lock", "status", "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if found.returncode:
        sys.exit(told(found.returncode))  # DVC has printed the error
    return set(json.loads(found.stdout))


def cells(stages: set[str]) -> list[str]:
    """Return the models whose training or extraction is among ``stages``, in the order in which they are computed.

    The two-layer model and the one-layer model with the fewest heads come first, for early results (untrained models do
    not count). The others follow, from the most layers and heads to the fewest.
    """
    declared = params()["cells"]
    found = [name for name in declared if stages & {f"train@{name}", f"extract@{name}"}]
    found.sort(key=lambda name: [-declared[name]["model"][size] for size in ("n_layers", "n_heads")])
    by_depth = {declared[name]["model"]["n_layers"]: name for name in found if declared[name]["train"]["tokens"]}
    first = [by_depth[depth] for depth in (2, 1) if depth in by_depth]
    return first + [name for name in found if name not in first]


def side_by_side(names: list[str], jobs: int) -> int:
    """Train and extract the models ``names``, ``jobs`` at a time (0: the default of ``at_a_time``), on shared cores.

    Return 1 if any model failed, otherwise 0.
    """
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

    failed, progress = False, Progress(params()["cells"], names)
    with ThreadPool(jobs) as pool:
        for name, code in pool.imap_unordered(make, names):
            print(progress.line(name, CIRCUITS / name / "summary.json", bool(code)), file=sys.stderr, flush=True)
            failed |= code != 0
    return int(failed)


def report_without(failed: list[str]) -> None:
    """Make the verdicts and the report without the ``failed`` models, and delete their old records.

    Always raises ValueError, which names these models.
    """
    for name in failed:
        shutil.rmtree(CIRCUITS / name, ignore_errors=True)
    CIRCUITS.mkdir(exist_ok=True)
    made = write("--single-item", "calibrate", "verify", "report") == 0
    raise ValueError(
        f"expected {len(params()['cells'])} models, got all but {', '.join(failed)}, whose errors are above; "
        + ("the report was made without them and names them. " if made else "the report could not be made either. ")
        + "Fix the cause and run the same command again: it computes only the missing results"
    )


def models(jobs: int, left: set[str] | None = None) -> int:
    """Train and extract every model that is out of date, ``jobs`` at a time (0: the default), after the stages that all
    models share. Return the exit code. ``left`` is the result of ``stale``, if known."""
    left = stale() if left is None else left
    name_strangers(left)
    if left & SHARED and (code := dvc("repro", "statistics")):
        return code
    return side_by_side(cells(stale() if left & SHARED else left), jobs)


def repro(jobs: int) -> int:
    """Compute every result that is out of date, including the report. Return the exit code.

    If only models failed, make the report without them and raise ValueError.
    """
    if not (left := stale()):
        print("Data and pipelines are up to date.")  # the message of DVC
        return 0
    code = models(jobs, left) or write()
    if not code:
        note_outputs()
        from pipelines.compare import since_commit  # its imports take longer than a call with nothing to do

        print(f"pathsum: the report is reports/index.html (make open). {since_commit()}".strip(), file=sys.stderr)
        return 0
    left = stale()
    if not left & SHARED:
        name_committed(left)
        if failed := cells(left):
            report_without(failed)
    print("pathsum: fix the cause above and run the same command again; it goes on where it stopped", file=sys.stderr)
    return code


def report(_: int) -> int:
    """Write the report again from stored records, also before all models are made. Return the exit code.

    Before that, the check stage is run if it is out of date. If all models are made, calibration and verdicts are also
    renewed if they are out of date. Otherwise results that are out of date are left out (``report_so_far``)."""
    left = stale()
    name_strangers({*left, "report"})
    if "check" in left and (code := dvc("repro", "--single-item", "check")):
        return code
    left = stale() if "check" in left else left
    if left & SHARED or cells(left):
        return report_so_far(left)
    renewed = [name for name in ("calibrate", "verify") if name in left]
    code = write("--single-item", *renewed) if renewed else 0
    return code or write("--single-item", "--force", "report")


def report_so_far(left: set[str]) -> int:
    """Write the verdicts and the report, without DVC, from the records of the models made so far. Return the exit
    code. ``left`` are the stages that are out of date, whose results are left out."""
    missing = "not all results are made; the report shows those so far, and names missing models"
    busy = "another command computes results in this folder; the report shows the records so far"
    print(f"pathsum: {missing if left & SHARED or cells(left) else busy}", file=sys.stderr, flush=True)
    with held(REPORT_LOCK, waiting):
        for module in ("pipelines.verify", "pipelines.report"):
            done = subprocess.run(
                [sys.executable, "-m", module], env=os.environ | {SO_FAR: " ".join(left)}, check=False
            )
            if done.returncode:
                return done.returncode
    return 0


def tokens(_: int) -> int:
    """Write the tokens if they are out of date. Return the exit code."""
    mend()
    name_strangers({"check", "tokenize"})
    return dvc("repro", "--quiet", "tokenize")


def arguments(given: Sequence[str]) -> tuple[Callable[[int], int], int]:
    """Return the function to run, and the number of models to process at a time (0: the default).

    Raises ValueError if the command line has other arguments.
    """
    parts: dict[str, Callable[[int], int]] = {"--models": models, "--report": report, "--tokens": tokens}
    chosen = [argument for argument in given if argument in parts]
    jobs = [argument for argument in given if argument not in parts]
    if wrong := [argument for argument in jobs if argument.startswith("--")]:
        raise ValueError(f"expected none or one of {', '.join(parts)}, got {wrong[0]}; --help explains them")
    if len(chosen) > 1:
        raise ValueError(f"expected one of {', '.join(parts)}, got {' '.join(chosen)}; run them one after another")
    if jobs and (len(jobs) > 1 or not jobs[0].isdecimal() or int(jobs[0]) < 1):
        raise ValueError(f"JOBS: expected how many models to process at a time, at least 1, got {' '.join(jobs)!r}")
    return parts[chosen[0]] if chosen else repro, int(jobs[0]) if jobs else 0


def require_graph() -> None:
    """Raise ValueError unless this folder has stages, models in params.yaml, folders for results that can be written,
    and a git repository (not needed if DVC is set to ``no_scm``). See also ``require_limits``.

    In a folder without stages, DVC would say that everything is up to date.
    """
    graph = read_yaml(GRAPH) if GRAPH.is_file() else None
    if not isinstance(graph, dict) or not graph.get("stages"):
        raise ValueError(
            f"{GRAPH}: expected the stages of the graph, got none; put it back, or run this in the repository's root"
        )
    settings = Path(".dvc/config").read_bytes() if Path(".dvc/config").is_file() else b""
    if not Path(".git").exists() and Path(".dvc").is_dir() and b"no_scm" not in settings:
        raise ValueError(f"expected a git repository in {Path.cwd()}, got none; run `git init`, or clone the project")
    for above, folders, names in os.walk("conf"):
        for path in (Path(above, name) for name in (*folders, *names)):
            if not path.exists() and not path.name.startswith(".#"):  # an editor's lock
                raise ValueError(f"{path}: expected a file or folder, got a link to none; put it back")
    section(params(), "cells")
    for path in (*filter(Path.exists, OUTPUTS), Path.cwd()):  # DVC would not name it
        if not os.access(path, os.W_OK):
            raise ValueError(f"{path}: expected a folder that can be written, got one that is read-only; change that")
    require_limits()


def require_limits() -> None:
    """Raise ValueError unless the limits of the shell are at least ``LIMITS``."""
    for limit, option, unit, least, what in LIMITS:
        most, _ = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY and most < least * unit:
            raise ValueError(
                f"expected a limit of at least {least:,} {what}, got {most // unit:,}; raise it with "
                f"`ulimit -S -{option} {least}`, or open another shell, and type the same command again"
            )


def waiting(holder: str) -> None:
    """Print that this command waits for process ``holder``, which computes results in this folder."""
    print(f"pathsum: waiting for process {holder}, which computes results in this folder", file=sys.stderr, flush=True)


def wait_for_tokens() -> None:
    """While another process computes results in this folder, wait until there are tokens to train on."""
    holders: list[str] = []

    def wait(holder: str) -> None:
        if not holders:
            waiting(holder)
        holders.append(holder)
        time.sleep(0.5)
        raise Busy

    while TMP.is_dir() and not all((TOKENS / f"{part}.json").exists() for part in ("train", "tuning")):
        with suppress(Busy), held(LOCK, wait):
            return


class Busy(Exception):
    """Raised when another process computes results in this folder."""


def not_now(_: str) -> None:
    raise Busy


def alone(part: Callable[[int], int], jobs: int) -> int:
    """Run ``part`` once no other process computes results in this folder, and return its exit code.

    A report does not wait: it is made from the existing records.
    """
    try:
        with held(LOCK, not_now if part is report else waiting):
            return part(jobs)
    except Busy:
        return report_so_far(status())


if __name__ == "__main__":
    with stage(threads=0):
        show_help(__doc__)
        os.environ.pop(SO_FAR, None)  # which only ``report_so_far`` may set
        part, jobs = arguments(sys.argv[1:])
        require_graph()
        sys.exit(alone(part, jobs))
