"""`make torture`: kill and damage the smoke graph at random, repeat the command, and compare with an undisturbed run.

python -m pipelines.torture --minutes 10 --seed 1 [--graph FOLDER]

FOLDER is a finished smoke graph (pipelines/smoke.sh FOLDER); without it, one is made. Each round deletes the results of
some stages and disturbs `make repro` one to three times. Each time, a process is killed (-9) or the command is
interrupted (-2), at a random moment or when dvc.lock is written. Then up to three stored files are truncated, emptied,
deleted or filled with zeros, or one of their bits is flipped. An undisturbed repetition must then succeed and give the
same bytes. The seed determines everything except timing.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import yaml

from pipelines.interrupts import INTERRUPTED
from pipelines.paths import ROOT, read_yaml, stage

COMPARED = ("data", "models", "circuits", "reports")
DAMAGED = (*COMPARED, "runs", ".dvc/cache", ".dvc/tmp", "dvc.lock")
MOMENTS = ("anywhere", "in a stage", "at dvc.lock")
LONG = 8.0  # seconds until the latest random moment
GONE = 4.0  # seconds after which a process of a killed command must have ended
AT_THE_END = 1.0  # seconds in which a command that has nothing left to do may end after an interrupt
DISTURBANCES = 3  # at most, in a round
MOST_MINUTES = 7 * 24 * 60


class Different(Exception):
    """Raised when a disturbed graph does not end like an undisturbed one."""


def main(minutes: float, seed: int, graph: Path | None, folder: Path) -> None:
    """Run rounds for ``minutes``, at least one. Raises Different, which names the round that failed and its folder."""
    if graph is None:
        graph = folder / "undisturbed"
        made = subprocess.run(["bash", str(ROOT / "pipelines" / "smoke.sh"), str(graph)], cwd=ROOT, check=False)
        if made.returncode:
            raise ValueError("expected an undisturbed run to compare with, got the error above; mend its cause first")
    end, rounds = time.monotonic() + 60 * minutes, 0
    while rounds == 0 or time.monotonic() < end:
        work = folder / f"round-{rounds}"
        shutil.copytree(graph, work, symlinks=True)
        try:
            one_round(work, graph, random.Random(f"{seed}/{rounds}"))
        except Different as error:
            raise Different(f"seed {seed}, round {rounds}: {error}; see {work}") from None
        shutil.rmtree(work)
        rounds += 1
    print(f"torture: {rounds} rounds with seed {seed} ended with the bytes of an undisturbed run")


def one_round(work: Path, graph: Path, chance: random.Random) -> None:
    """Delete results, disturb the command that makes them again, and repeat it undisturbed.

    Raises Different if the repetition fails or gives other bytes than ``graph``.
    """
    stages = read_yaml(work / "dvc.lock")["stages"]
    names = chance.sample(sorted(stages), chance.randint(1, 3))
    print(f"round: {', '.join(names)} to be made", flush=True)
    forget(work, names)
    for _ in range(chance.randint(1, DISTURBANCES)):
        disturb(work, chance)
        for _ in range(chance.randint(0, 3)):
            damage(work, chance)
    code, said = finish(start(work))
    if code:
        raise Different(f"the last repetition ended with exit code {code}: {said[-2000:]}")
    if found := differences(graph, work):
        raise Different(f"other bytes than in {graph}: {', '.join(found[:9])}")


def forget(work: Path, names: list[str]) -> None:
    """Delete the results of the stages ``names``, and all copies from which they could be restored."""
    lock = read_yaml(work / "dvc.lock")
    for name in names:
        if name.startswith("train@"):
            curve = (work / "models" / name.removeprefix("train@") / "log.jsonl").read_bytes()
            for log in (work / "runs").glob("*/log.jsonl"):
                if log.read_bytes() == curve:
                    shutil.rmtree(log.parent)
        for out in lock["stages"].pop(name)["outs"]:
            path = work / out["path"]
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (work / "dvc.lock").write_text(yaml.safe_dump(lock, sort_keys=False))
    (work / ".dvc" / "tmp" / "dvc.lock.gz").unlink(missing_ok=True)
    shutil.rmtree(work / ".dvc" / "cache" / "runs")


def disturb(work: Path, chance: random.Random) -> None:
    """Start the command, kill one of its processes or interrupt the command, and wait until all processes have ended.

    Raises Different for a wrong exit code after an interrupt, or for a process that still runs after GONE seconds.
    """
    moment, seconds = chance.choice(MOMENTS), chance.uniform(0, LONG)
    sent, whom = chance.choice((signal.SIGKILL, signal.SIGINT)), chance.random()
    command = start(work)
    wait_for(moment, seconds, command, work)
    if command.poll() is not None:
        print(f"  {moment}: it had ended before, with exit code {finish(command)[0]}", flush=True)
        return
    tree = [psutil.Process(command.pid), *psutil.Process(command.pid).children(recursive=True)]
    victim = tree[0] if sent == signal.SIGINT else tree[int(whom * len(tree))]
    name = " ".join(words(victim)[:5])[:60]
    victim.send_signal(sent)
    begun = time.monotonic()
    code, said = finish(command)
    was_done = code == 0 and time.monotonic() - begun < AT_THE_END
    print(f"  {moment}, after {seconds:.1f} s: {sent.name} to {name!r}; exit code {code}", flush=True)
    too_early = code == -signal.SIGINT and not said  # Python had not begun to import the command
    if sent == signal.SIGINT and code != INTERRUPTED and not was_done and not too_early:
        raise Different(f"expected exit code {INTERRUPTED} after an interrupt, got {code}: {said[-2000:]}")
    _, alive = psutil.wait_procs(tree, GONE)
    if alive:
        raise Different(f"still running after {GONE} s: {[words(process) for process in alive]}")


def wait_for(moment: str, seconds: float, command: subprocess.Popen[str], work: Path) -> None:
    """Wait for one of MOMENTS, or until the command ends.

    The moment is ``seconds`` after the start of the command or of a stage, or at most 0.1 s after dvc.lock changes.
    """
    lock, begun = work / "dvc.lock", time.monotonic()
    before = lock.stat().st_mtime_ns if lock.exists() else 0
    while command.poll() is None:
        waited = time.monotonic() - begun
        if moment == "anywhere" and waited > seconds:
            return
        if moment == "at dvc.lock" and lock.exists() and lock.stat().st_mtime_ns != before:
            time.sleep(seconds / LONG / 10)
            return
        if moment == "in a stage" and in_a_stage(command.pid):
            time.sleep(seconds)
            return
        time.sleep(0.002)


def in_a_stage(pid: int) -> bool:
    """Return whether a stage runs under the process ``pid``."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return False
    return any("pipelines." in word for child in children for word in words(child) if len(words(child)) < 5)


def words(process: psutil.Process) -> list[str]:
    """Return the command line of a process; an empty list if the process has ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def damage(work: Path, chance: random.Random) -> None:
    """Damage a random stored file: truncate, empty or delete it, flip one of its bits, or fill it with zeros."""
    place = work / chance.choice(DAMAGED)
    files = sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]
    at, where, how = chance.random(), chance.random(), chance.choice(("truncate", "flip", "empty", "fill", "delete"))
    files = [path for path in files if path.exists() and "wandb" not in path.parts]
    if not files:
        return
    path = files[int(at * len(files))]
    content = bytearray(path.read_bytes())
    path.chmod(0o644)
    if how == "flip" and content:
        content[int(where * len(content))] ^= 1 << int(8 * at)
    if how == "delete":
        path.unlink()
    else:
        kept: dict[str, bytes | bytearray] = {
            "truncate": content[: int(where * len(content))],
            "empty": b"",
            "fill": bytes(len(content)),
        }
        path.write_bytes(kept.get(how, content))
    if ".dvc/cache/files" in str(path) and path.exists():
        path.chmod(0o444)  # read-only, so that DVC trusts it without hashing
    print(f"  {how} {path.relative_to(work)}", flush=True)


def start(work: Path) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(work / "src"), str(work)])}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines.repro"], cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=unblock,
    )  # fmt: skip


def unblock() -> None:
    """Let the new command receive interrupts, which this process blocks in all that it starts."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.default_int_handler)


def finish(command: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the command, and return its exit code and what it printed."""
    said, _ = command.communicate()
    return command.returncode, said


def differences(graph: Path, work: Path) -> list[str]:
    """Return the files in COMPARED that are not the same in both folders."""
    names = {p.relative_to(f) for f in (graph, work) for part in COMPARED for p in (f / part).rglob("*") if p.is_file()}
    same = filecmp.cmpfiles(graph, work, sorted(map(str, names)), shallow=False)[0]
    return sorted({*map(str, names)} - set(same))


if __name__ == "__main__":
    with stage(threads=0):
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--minutes", type=float, default=10)
        parser.add_argument("--seed", type=int, default=random.randrange(1000))
        parser.add_argument("--graph", type=Path)
        given = parser.parse_args()
        if not 0 <= given.minutes <= MOST_MINUTES:
            raise ValueError(f"MINUTES: expected a number from 0 to {MOST_MINUTES:,}, got {given.minutes}")
        if given.graph and not (given.graph / "reports" / "index.html").is_file():
            raise ValueError(f"--graph: expected a folder that `pipelines/smoke.sh FOLDER` has made, got {given.graph}")
        print(f"torture: seed {given.seed}", flush=True)
        scratch = Path(tempfile.mkdtemp(prefix="torture-"))
        try:
            main(given.minutes, given.seed, given.graph, scratch)
        except Different as error:
            sys.exit(f"torture: {error}")
        except KeyboardInterrupt:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        shutil.rmtree(scratch)
