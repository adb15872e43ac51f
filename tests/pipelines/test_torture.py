"""A short `make torture`: one round on the shared smoke graph, and the parts that a round is made of."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from pipelines import torture
from pipelines.interrupts import INTERRUPTED
from pipelines.paths import ROOT
from tests.commands import command

CHEAP = ["train@L0S0"]  # its results are the same bytes again, so nothing after it is out of date


class Chance(random.Random):
    """A round in which a model is trained again, the command is killed in this stage, and two files are damaged."""

    def sample(self, *_: object, **__: object) -> list[str]:  # type: ignore[override]
        return CHEAP

    def randint(self, a: int, b: int) -> int:
        return 1 if a else 2

    def choice(self, options: object) -> object:  # type: ignore[override]
        return "in a stage" if options is torture.MOMENTS else super().choice(options)  # type: ignore[arg-type]

    def random(self) -> float:
        return super().random() / 9  # the first process and the first files: no report is made without the model

    def uniform(self, a: float, b: float) -> float:
        return super().uniform(a, b / 4)


def test_a_disturbed_graph_ends_as_an_undisturbed_one(
    graph: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torture, "DAMAGED", ("dvc.lock", "models", "runs"))  # quickly made again
    torture.one_round(workspace, graph, Chance(3))


def test_a_difference_is_found(graph: Path, tmp_path: Path) -> None:
    for part in torture.COMPARED:
        shutil.copytree(graph / part, tmp_path / part)
    assert torture.differences(graph, tmp_path) == []
    (tmp_path / "models" / "L0S0" / "log.jsonl").write_text("")
    (tmp_path / "circuits" / "L0S0" / "summary.json").unlink()
    (tmp_path / "reports" / "more.md").write_text("")
    assert torture.differences(graph, tmp_path) == [
        "circuits/L0S0/summary.json", "models/L0S0/log.jsonl", "reports/more.md",
    ]  # fmt: skip


def test_a_command_that_fails_is_reported(workspace: Path, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [sys.executable, "-c", "import sys; print('no disk'); sys.exit(3)"]
    monkeypatch.setattr(
        torture,
        "start",
        lambda _: subprocess.Popen(failing, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True),
    )
    with pytest.raises(torture.Different, match="the last repetition ended with exit code 3: no disk"):
        torture.one_round(workspace, graph, Chance(3))


class Interrupt(random.Random):
    """A disturbance by an interrupt, after a tenth of a second."""

    def choice(self, options: object) -> object:  # type: ignore[override]
        return signal.SIGINT if signal.SIGINT in options else torture.MOMENTS[0]  # type: ignore[operator]

    def uniform(self, a: float, b: float) -> float:
        return 0.1


@pytest.mark.parametrize(("seconds", "fails"), [(0.3, False), (3, True)])
def test_an_interrupt_may_come_too_late_but_is_never_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, fails: bool
) -> None:
    command = [sys.executable, "-c", f"import time; time.sleep({seconds})"]
    monkeypatch.setattr(
        torture,
        "start",
        lambda _: subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        ),
    )
    monkeypatch.setattr(torture, "AT_THE_END", 1.5)
    monkeypatch.setattr(torture, "wait_for", lambda *_: time.sleep(0.1))
    if fails:
        with pytest.raises(torture.Different, match="expected exit code 130 after an interrupt, got 0"):
            torture.disturb(tmp_path, Interrupt(3))
    else:
        torture.disturb(tmp_path, Interrupt(3))


@pytest.mark.parametrize("seed", range(7))
def test_a_damage_changes_one_file(tmp_path: Path, seed: int) -> None:
    for name in torture.DAMAGED:
        path = tmp_path / name if "." in name[1:] else tmp_path / name / "file"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    torture.damage(tmp_path, random.Random(seed))
    left = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert left.count("content") == len(torture.DAMAGED) - 1


def test_an_interrupt_deletes_the_scratch_folder(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        assert [path.name[:8] for path in tmp_path.iterdir()] == ["torture-"]
        raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "copytree", interrupt)
    assert command(ROOT, "pipelines.torture", "--graph", str(graph)).returncode == INTERRUPTED
    assert list(tmp_path.iterdir()) == []
