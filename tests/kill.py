"""`make kill`: kill `make repro` on tiny models ten times, and compare what the same command then makes.

python -m tests.kill [--seed 1] [--kills 10] [--graph FOLDER]

FOLDER is a finished smoke graph (pipelines/smoke.sh FOLDER); without it, one is made. Each time, the results of two
stages are deleted, `make repro` starts, and at a random moment, or when dvc.lock is written, its process group or its
DVC alone is killed. What docs/recovery.md says must then end in the bytes of the undisturbed graph.
"""

import argparse
import filecmp
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import yaml

from tests.pipelines.workspace import environment, run, sh

STAGES = {
    "train": "models",
    "extract": "circuits",
    "calibrate": "reports/calibration",
    "report": "reports/figures",
}
REPRO = (sys.executable, "-m", "pipelines.repro", "--jobs=2")
MENDED_BY = re.findall(r"`(git checkout [^`]*)`", Path("docs/recovery.md").read_text())[0]
COMPARED = ("data", "models", "circuits", "reports")
LONG, GONE = 12.0, 5.0  # seconds to the latest kill; seconds after which no process of the command may run


def kill(graph: Path, work: Path, chance: random.Random, dvc_alone: bool, at_lock: bool) -> str:
    """Kill one run in ``work``, a copy of ``graph``, and go on. Return what was killed. Raises AssertionError."""
    names = chance.sample(sorted(STAGES), 2)
    forget(work, names)
    seconds, before = chance.uniform(0.5, LONG), (work / "dvc.lock").stat().st_mtime_ns
    command = subprocess.Popen(
        REPRO, cwd=work, env=environment(work), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + (120 if at_lock else seconds)
    while time.monotonic() < end and command.poll() is None:
        if at_lock and (not (work / "dvc.lock").exists() or (work / "dvc.lock").stat().st_mtime_ns != before):
            break
        time.sleep(0.001)
    tree = psutil.Process(command.pid).children(recursive=True) if command.poll() is None else []
    if dvc_alone:
        for process in tree[:1]:  # the only child of the command
            process.kill()
    elif command.poll() is None:
        os.killpg(command.pid, signal.SIGKILL)
    command.wait()
    _, alive = psutil.wait_procs(tree, GONE)
    assert not alive, f"still running: {[process.cmdline() for process in alive]}"
    done = run(work, *REPRO)
    if done.returncode:  # a file of DVC was being written
        sh(work, "bash", "-c", MENDED_BY)
        sh(work, *REPRO)
    made = {p.relative_to(f) for f in (graph, work) for part in COMPARED for p in (f / part).rglob("*") if p.is_file()}
    same = filecmp.cmpfiles(graph, work, sorted(map(str, made)), shallow=False)[0]
    assert not (other := sorted({*map(str, made)} - set(same))), f"other bytes: {other[:9]}"
    moment = "at dvc.lock" if at_lock else f"after {seconds:.1f} s"
    mended = ", with the commands of docs/recovery.md" if done.returncode else ""
    return f"{' and '.join(names)}: {'DVC alone' if dvc_alone else 'the process group'} {moment}{mended}"


def forget(work: Path, names: list[str]) -> None:
    """Delete the results of stages, and what they could be restored from: the last model and its records."""
    lock = yaml.safe_load((work / "dvc.lock").read_text())
    for name in names:
        out = work / STAGES[name]
        shutil.rmtree(out) if out.is_dir() else out.unlink()
        del lock["stages"][name]
    (work / "dvc.lock").write_text(yaml.safe_dump(lock, sort_keys=False))
    shutil.rmtree(work / ".dvc" / "cache" / "runs", ignore_errors=True)
    entries = sorted(path.parent for path in (work / "runs").rglob("manifest.json"))
    for entry in entries[::2]:
        shutil.rmtree(entry)


def main(graph: Path, scratch: Path, seed: int, kills: int) -> None:
    for number in range(kills):
        work = scratch / f"kill-{number}"
        shutil.copytree(graph, work, symlinks=True)
        sh(work, "git", "add", "--force", "dvc.lock")
        said = kill(graph, work, random.Random(f"{seed}/{number}"), number % 2 == 1, number % 5 == 4)
        print(f"kill {number}, seed {seed}: {said}: same bytes", flush=True)
        shutil.rmtree(work)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--graph", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kill-") as folder:
        graph = given.graph or Path(folder, "undisturbed")
        if not given.graph:
            subprocess.run(["bash", "pipelines/smoke.sh", str(graph)], check=True)
        main(graph, Path(folder), given.seed, given.kills)
