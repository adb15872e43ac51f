"""A stored run is used only under the fingerprint that it was trained for, whatever its manifest says."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from pathsum.training.store import finished
from pipelines.train_cell import FINGERPRINT
from tests.pipelines.workspace import sh

NAMES = ("L1H2S0", "L2H2S0")


def of(folder: Path, name: str) -> Path:
    """Return the stored run with this model's loss curve."""
    curve = (folder / "models" / name / "log.jsonl").read_bytes()
    (run,) = (p.parent for p in (folder / "runs").glob("*/log.jsonl") if p.read_bytes() == curve)
    return run


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    for old, new in ((one, aside), (other, one), (aside, other)):
        old.rename(new)


@pytest.mark.parametrize("older", [False, True], ids=["with_fingerprint", "older"])
def test_runs_that_changed_places_are_trained_again_and_not_adopted(graph: Path, workspace: Path, older: bool) -> None:
    """An older run has no file with its fingerprint, and is known by its configuration."""
    runs = [of(workspace, name) for name in NAMES]
    if older:
        for run in runs:
            (run / FINGERPRINT).unlink()
    swap(*runs)
    assert all(map(finished, runs))  # as far as their manifests know
    shutil.rmtree(workspace / "models" / NAMES[0])
    said = sh(workspace, sys.executable, "-m", "pipelines.train_cell", NAMES[0])
    assert f"{runs[0].name}: holds another run or a damaged one; it is deleted, and this model is trained" in said
    made, expected = (folder / "models" / NAMES[0] for folder in (workspace, graph))
    for path in sorted(p for p in expected.rglob("*") if p.is_file()):
        assert (made / path.relative_to(expected)).read_bytes() == path.read_bytes(), path
    shutil.rmtree(runs[1])
    assert sh(workspace, sys.executable, "-m", "pipelines.train_cell", NAMES[1])


def test_a_run_in_its_place_is_used(workspace: Path) -> None:
    run = of(workspace, NAMES[0])
    times = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file() and path.name != "lock"}
    (run / FINGERPRINT).unlink()
    said = sh(workspace, sys.executable, "-m", "pipelines.train_cell", NAMES[0])
    assert "holds another run" not in said
    assert {path: path.stat().st_mtime_ns for path in times if path.exists()} == {
        path: time for path, time in times.items() if path.name != FINGERPRINT
    }
