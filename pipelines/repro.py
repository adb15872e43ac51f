"""`make repro`: compute every result that is out of date, and then the report.

python -m pipelines.repro [--jobs N] [STAGE] runs `dvc repro`, one call at a time in this folder, up to a STAGE of
dvc.yaml. If a model fails, the others are still made, and so is a report without it, which names it; the exit code is
then not 0.

python -m pipelines.repro --report writes verdicts and report again, from the records in circuits/.
"""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from pathsum.core.store import held, keep
from pipelines.paths import CIRCUITS, JOBS, MODELS, RECORDS, RUNS, stage

LOCK, WORK = Path(".dvc/tmp/repro.lock"), "computes results in this folder"
REPORT = ("pipelines.verify", "pipelines.report")


def dvc(*arguments: str) -> int:
    """Run DVC with ``arguments`` and return its exit code, 130 after an interrupt. Stages use this interpreter."""
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))  # DVC gets it as well
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    code = subprocess.run([sys.executable, "-m", "dvc", *arguments], env=os.environ | {"PATH": path}).returncode
    signal.signal(signal.SIGINT, before)
    return 130 if interrupts else code


def run(*modules: str) -> int:
    """Run stages without DVC, up to the first that fails, and return its exit code."""
    return next((c for m in modules if (c := subprocess.run([sys.executable, "-m", m]).returncode)), 0)


def repro(*stages: str) -> int:
    """Compute every result that is out of date, up to ``stages`` if there are any. Return the exit code."""
    keep(MODELS, RUNS)
    keep(CIRCUITS, RECORDS)
    lock = Path("dvc.lock")
    before = lock.exists() and lock.read_bytes()
    if not (code := dvc("repro", *stages)):
        if not stages and lock.read_bytes() != before:
            from pipelines.compare import ending  # its imports take longer than a call with nothing to do

            print(ending(), file=sys.stderr)
        return 0
    if code == 130:
        print("\ninterrupted; run the same command again to go on", file=sys.stderr)
        return code
    if not stages and (incomplete(MODELS) or incomplete(CIRCUITS)):
        run("pipelines.extract")
        if CIRCUITS.is_dir() and not run(*REPORT):
            print("pathsum: the report was made without these models, and names them", file=sys.stderr)
    print("pathsum: fix the cause above and run the same command again; it goes on where it stopped", file=sys.stderr)
    return code


def incomplete(folder: Path) -> bool:
    """Return whether ``folder`` has some of the models of the grid, but not all."""
    from pipelines import grid
    from pipelines.paths import params

    made = [(folder / name).is_dir() for name in grid.every(params())]
    return any(made) and not all(made)


if __name__ == "__main__":
    with stage(threads=0):
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--jobs", default="", help="models at a time; default: by cores, memory and GPU")
        parser.add_argument("--report", action="store_true", help="write verdicts and report again")
        parser.add_argument("stage", nargs="*", help="a stage of dvc.yaml")
        given = parser.parse_args()
        if not Path("dvc.yaml").is_file():
            raise ValueError(f"expected dvc.yaml in {Path.cwd()}, found none; run this in the root of the repository")
        if given.jobs:
            from pipelines.pool import at_a_time

            os.environ[JOBS] = given.jobs
            at_a_time()  # refuses a wrong number before any work
        if given.report:
            sys.exit(run(*REPORT))
        with held(LOCK, WORK):
            sys.exit(repro(*given.stage))
