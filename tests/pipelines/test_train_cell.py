"""A stored run is used only under the fingerprint that it was trained for, whatever its manifest says."""

from __future__ import annotations

import errno
import shutil
import sys
from pathlib import Path

import pytest

from pathsum.core.storage import write_json
from pathsum.training.store import finished
from pipelines.train_cell import FINGERPRINT, discard_other
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
    assert f"{runs[0].name}: holds files of another run, or damaged ones; they are deleted, and the model" in said
    made, expected = (folder / "models" / NAMES[0] for folder in (workspace, graph))
    for path in sorted(p for p in expected.rglob("*") if p.is_file()):
        assert (made / path.relative_to(expected)).read_bytes() == path.read_bytes(), path
    shutil.rmtree(runs[1])  # for the next test
    sh(workspace, sys.executable, "-m", "pipelines.train_cell", NAMES[1])


CELL_OF_RUN = {"model": {"n_layers": 1}, "seed": 3}


class Cell:
    """A configuration that is stored as CELL_OF_RUN."""

    def model_dump(self, mode: str) -> dict[str, object]:
        assert mode == "json"
        return CELL_OF_RUN


def begun(folder: Path, fingerprint: str | None, about: dict[str, object] | None) -> Path:
    """Return the folder of an unfinished run."""
    run = folder / "0123456789abcdef"
    (run / "wandb").mkdir(parents=True)
    for name in ("lock", "state.bin", "wandb/log"):
        (run / name).write_text(name)
    if fingerprint is not None:
        (run / FINGERPRINT).write_text(fingerprint)
    if about is not None:
        write_json(run / "cell.json", about)
    return run


def discarded(run: Path) -> bool:
    """Return whether the files of a run are deleted because they belong to another one."""
    before = sorted(run.rglob("*"))
    discard_other(run, Cell())  # type: ignore[arg-type]
    after = sorted(run.rglob("*"))
    assert after in (before, [run / "lock"])
    return after != before


@pytest.mark.parametrize(
    ("fingerprint", "about", "kept"),
    [
        ("0123456789abcdef", CELL_OF_RUN, True),
        ("0123456789abcdef\n", CELL_OF_RUN, True),
        ("0123456789abcdef", None, True),  # killed before the configuration was written; nothing else depends on it
        (None, CELL_OF_RUN, True),  # older than the file
        ("fedcba9876543210", CELL_OF_RUN, False),  # same configuration, other text or code
        (None, CELL_OF_RUN | {"seed": 4}, False),
        (None, None, False),
        ("\0\0", CELL_OF_RUN, False),
    ],
)
def test_an_unfinished_run_is_kept_in_its_own_folder_only(
    tmp_path: Path, fingerprint: str | None, about: dict[str, object] | None, kept: bool
) -> None:
    assert discarded(begun(tmp_path, fingerprint, about)) != kept


def test_a_folder_that_is_new_or_cannot_be_read_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new"
    new.mkdir()
    (new / "lock").touch()
    assert not discarded(new)
    assert capsys.readouterr().err == ""
    run = begun(tmp_path, "0123456789abcdef", CELL_OF_RUN)

    def fails(*_: object, **__: object) -> str:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "read_text", fails)
    with pytest.raises(OSError, match="Input/output"):
        discarded(run)
    assert (run / "state.bin").exists()


@pytest.mark.parametrize("older", [False, True], ids=["with_fingerprint", "older"])
def test_a_finished_run_in_its_place_is_used(workspace: Path, older: bool) -> None:
    run = of(workspace, NAMES[0])
    if older:
        (run / FINGERPRINT).unlink()
    times = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file() and path.name != "lock"}
    said = sh(workspace, sys.executable, "-m", "pipelines.train_cell", NAMES[0])
    assert "holds files of another run" not in said
    assert {path: path.stat().st_mtime_ns for path in times} == times
