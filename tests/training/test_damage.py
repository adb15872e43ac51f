"""Damaged files of a stored run are found and made again: training ends with the bytes of an undisturbed run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pathsum.training.loop as loop
from pathsum.core.manifest import MANIFEST, damage
from pathsum.training.state import PREVIOUS, STATE
from pathsum.training.store import finished
from tests.training.small import run, trained

FIRST, LAST = "checkpoints/00000000.safetensors", "checkpoints/00000024.safetensors"


def contents(folder: Path) -> dict[str, bytes]:
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix != ".damaged"]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def flip(path: Path) -> None:
    """Flip one bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def fill(path: Path) -> None:
    """Replace the content with zeros, as a file system does after a loss of power."""
    path.write_bytes(bytes(path.stat().st_size))


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run that was interrupted after step 17 of 24, after the evaluation at step 12."""
    folder, steps, update = tmp_path_factory.mktemp("interrupted"), 0, loop.update

    def killed(*args: object) -> float:
        nonlocal steps
        steps += 1
        if steps == 18:
            raise KeyboardInterrupt
        return update(*args)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            run(folder)
    return folder


BEFORE, START = 1, 2  # number of states that are set aside


@pytest.mark.parametrize(
    ("names", "harm", "aside"),
    [
        *(((STATE,), harm, BEFORE) for harm in (flip, halve, empty, fill)),
        ((STATE,), Path.unlink, 0),
        ((STATE, PREVIOUS), flip, START),
        ((FIRST,), flip, START),
        ((FIRST,), Path.unlink, START),
        (("log.jsonl",), flip, START),
        (("log.jsonl",), halve, START),
    ],
)
def test_training_continues_from_the_last_state_that_fits_the_stored_files(
    interrupted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...],
    harm: Callable[[Path], None], aside: int,
) -> None:  # fmt: skip
    trained(tmp_path / "whole")
    broken = shutil.copytree(interrupted, tmp_path / "broken")
    for name in names:
        harm(broken / name)
    run(broken)
    assert contents(broken) == contents(tmp_path / "whole")
    assert capsys.readouterr().err.count("it is set aside, and training continues from the state before it") == aside
    assert not (broken / STATE).exists()  # a finished run needs none


@pytest.mark.parametrize("harm", [flip, halve, empty, fill, Path.unlink])
@pytest.mark.parametrize("name", [FIRST, LAST, "log.jsonl", MANIFEST])
def test_a_run_with_a_damaged_file_is_not_finished(tmp_path: Path, name: str, harm: Callable[[Path], None]) -> None:
    trained(tmp_path)
    assert finished(tmp_path)
    harm(tmp_path / name)
    assert not finished(tmp_path)
    assert name in damage(tmp_path)


@pytest.mark.parametrize(
    "edit",
    [
        dict.clear,
        lambda manifest: manifest["files"].clear(),
        lambda manifest: manifest["files"].popitem(),
        lambda manifest: manifest["files"].update({FIRST: "0" * 64}),
    ],
)
def test_an_edited_manifest_is_damaged(tmp_path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    trained(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_bytes())
    edit(manifest)
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    assert damage(tmp_path) == f"{MANIFEST} is damaged"


@pytest.mark.parametrize(("name", "harm"), [(FIRST, flip), ("log.jsonl", halve), (MANIFEST, empty)])
def test_a_damaged_finished_run_is_trained_again_and_not_adopted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, harm: Callable[[Path], None]
) -> None:
    trained(tmp_path / "whole")
    trained(tmp_path / "broken")
    harm(tmp_path / "broken" / name)
    run(tmp_path / "broken")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
    assert f"broken: {name} " in (said := capsys.readouterr().err)
    assert "this model is trained again" in said
