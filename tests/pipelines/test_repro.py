"""`make sweep JOBS=N`: which cells are begun, with how many threads, and what a mistake is told, without DVC."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines import repro
from pipelines.paths import ROOT


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, int]:
    """Cell → threads, of each `dvc repro` that was begun; B's fails."""
    found: dict[str, int] = {}

    def dvc(*arguments: str, threads: int = 2, out: int | None = None) -> int:
        name = arguments[-1].removeprefix("extract@")
        found[name] = threads
        return -9 if name == "B" else 0

    monkeypatch.setattr(repro, "dvc", dvc)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text("cells: {A: {}, B: {}, C: {}, D: {}}")
    return found


@pytest.mark.parametrize(("cores", "jobs", "threads"), [(8, 2, 2), (4, 2, 2), (3, 2, 1), (2, 2, 1), (2, 7, 1)])
def test_workers_share_the_cores(
    begun: dict[str, int], monkeypatch: pytest.MonkeyPatch, cores: int, jobs: int, threads: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert repro.side_by_side(["A", "C"], jobs) == 0
    assert begun == {"A": threads, "C": threads}


def test_a_failing_cell_does_not_stop_the_others(begun: dict[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    assert repro.side_by_side(["A", "B", "C", "D"], 2) == 1
    assert set(begun) == {"A", "B", "C", "D"}
    assert "B: failed (" in capsys.readouterr().err


def test_only_cells_that_are_out_of_date_are_begun(begun: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro, "stale", lambda: {"train@C", "extract@C", "extract@A", "verify", "report"})
    assert repro.repro(2) == 0
    assert list(begun) == ["statistics", "A", "C", "repro"] or list(begun) == ["statistics", "C", "A", "repro"]


def test_what_every_cell_needs_failing_blames_no_cell(begun: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro, "dvc", lambda *arguments: 255)
    monkeypatch.setattr(repro, "stale", lambda: {"check", "tokenize", "train@A"})
    assert repro.repro(1) == repro.repro(2) == 255


def test_jobs_must_be_a_number(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    for jobs in ("many", "0", "-1"):
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.repro", jobs],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr == f"\nerror: JOBS: expected a number of cells to make at a time, got {jobs!r}\n"
