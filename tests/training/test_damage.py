"""Damaged files of a stored run are found and made again: training ends with the bytes of an undisturbed run."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import pathsum.training.loop as loop
from pathsum.config import CellConfig
from pathsum.core.manifest import MANIFEST, damage
from pathsum.core.store import finished
from pathsum.training.state import STATE
from tests.training.small import CELL, RUN, contents, run, trained

FIRST, LAST = "checkpoints/00000000.safetensors", "checkpoints/00000024.safetensors"


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
    folder, steps, update = tmp_path_factory.mktemp("interrupted") / RUN, 0, loop.update

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


@pytest.mark.parametrize(
    ("name", "harm", "said"),
    [
        (STATE, flip, True),
        (STATE, empty, True),
        (STATE, Path.unlink, False),
        (FIRST, Path.unlink, True),
        ("log.jsonl", halve, True),
    ],
)
def test_training_starts_again_where_the_state_does_not_fit_the_stored_files(
    interrupted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, harm: Callable[[Path], None],
    said: bool,
) -> None:  # fmt: skip
    trained(tmp_path / "whole" / RUN)
    broken = shutil.copytree(interrupted, tmp_path / "broken" / RUN)
    harm(broken / name)
    run(broken)
    assert contents(broken) == contents(tmp_path / "whole" / RUN)
    assert ("does not fit the log and the checkpoints; training starts again" in capsys.readouterr().err) == said
    assert not (broken / STATE).exists()  # a finished run needs none


@pytest.mark.parametrize("harm", [flip, fill, Path.unlink])
@pytest.mark.parametrize("name", [FIRST, LAST, "log.jsonl", MANIFEST])
def test_a_run_with_a_damaged_file_is_not_finished(tmp_path: Path, name: str, harm: Callable[[Path], None]) -> None:
    made = tmp_path / RUN
    trained(made)
    assert finished(made)
    harm(made / name)
    assert not finished(made)
    assert name in damage(made)


@pytest.mark.parametrize(("name", "harm"), [(FIRST, flip), ("log.jsonl", halve), (MANIFEST, empty)])
def test_a_damaged_finished_run_is_trained_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, harm: Callable[[Path], None]
) -> None:
    trained(tmp_path / "whole" / RUN)
    trained(tmp_path / "broken" / RUN)
    harm(tmp_path / "broken" / RUN / name)
    run(tmp_path / "broken" / RUN)
    assert contents(tmp_path / "broken" / RUN) == contents(tmp_path / "whole" / RUN)
    assert f"{RUN}: {name} " in (said := capsys.readouterr().err)
    assert "this model is trained again" in said


OTHER = CellConfig(**{**CELL.model_dump(), "seed": 4})


def test_an_unfinished_run_continues_from_no_state_of_another(
    interrupted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Log and checkpoints fit the state, but they are those of a run with another seed."""
    run(tmp_path / "whole" / "other", OTHER)
    shutil.copytree(interrupted, tmp_path / "other")
    run(tmp_path / "other", OTHER)
    assert contents(tmp_path / "other") == contents(tmp_path / "whole" / "other")
    assert "state.bin: does not fit" in capsys.readouterr().err
