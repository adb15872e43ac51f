"""Run commands in a scratch copy of the project, and read what they print."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

CELLS = ["L0S0", "L1H2S0", "L2H2S0"]
CONTROLS = ["smeared", "untrained"]
ON_DOCSTRINGS = ["docstrings-L0S1", "docstrings-L1H2S1", "docstrings-L2H2S1"]
TOKENS = 20480  # that each model sees: forty whole batches


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "src"), str(folder)])
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if k not in ("DVC_EXP_NAME", "WANDB_MODE")}
    kept = {"PATHSUM_JOBS": "1", **kept}  # two files of tests run at a time
    return {**kept, "PYTHONPATH": path, "PATH": tools, "PYTHONDONTWRITEBYTECODE": "1", "DVC_NO_ANALYTICS": "1"}


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def sh(folder: Path, *command: str) -> str:
    """Return the output of a command. If it fails, the test fails."""
    done = run(folder, *command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def commit(folder: Path) -> None:
    sh(folder, "git", "add", "--all")
    sh(folder, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "scratch")


def locked(folder: Path) -> Any:
    """Return every stage's command, dependencies, parameters and outputs, by hash."""
    return yaml.safe_load((folder / "dvc.lock").read_text())["stages"]


def started(output: str) -> set[str]:
    """Return the stages that ran, by the output of `dvc repro`."""
    return {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")}


def stale(folder: Path) -> set[str]:
    """Return the stages with a direct dependency that has changed."""
    return set(json.loads(run(folder, "dvc", "status", "--json").stdout))


def with_what_follows(stages: set[str], lock: dict[str, Any]) -> set[str]:
    """Return these stages and all stages downstream of them."""
    found = set(stages)
    while True:
        outs = [Path(out["path"]) for name in found for out in lock[name].get("outs", [])]
        more = {
            name
            for name, entry in lock.items()
            for dep in map(Path, (d["path"] for d in entry.get("deps", [])))
            if any(dep == out or dep in out.parents or out in dep.parents for out in outs)
        }
        if more <= found:
            return found
        found |= more
