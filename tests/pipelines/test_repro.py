"""`make repro` and the pool of its models: order, threads, and messages about mistakes, without DVC."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pathsum.core.storage import json_lines
from pipelines import grid, pool, progress, repro
from pipelines.paths import ROOT, params
from pipelines.progress import HEADING, Told, row_of
from tests.commands import command
from tests.training.tracking.found import FOUND


def test_a_small_model_of_two_layers_and_of_one_come_first_and_then_the_longest() -> None:
    cells = grid.models(params(ROOT))
    names = list(cells)
    assert sorted(names) == sorted(grid.cells(params(ROOT)))
    assert [(cells[n].model.n_layers, cells[n].model.n_heads) for n in names[:3]] == [(2, 2), (1, 2), (2, 8)]
    sizes = [(cells[n].model.n_layers, cells[n].model.n_heads) for n in names[2:]]
    assert sizes == sorted(sizes, reverse=True)
    assert cells[names[0]].train.tokens > 0


def test_a_model_has_a_line_for_each_quarter_of_its_training(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told("L2H4S5", 1_000_000)
    for tokens in (0, 100_000, 300_000, 400_000, 1_000_000, 1_000_000):
        told(replace(FOUND, tokens_seen=tokens, val_loss_nats=2.5, prefix_matching=[[0.1], [0.7]]))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "L2H4S5                0.3 M of 1.0 M tokens", "L2H4S5                1.0 M of 1.0 M tokens"
    ]  # fmt: skip
    assert "loss 2.500 nats, prefix matching 0.70" in lines[0]


def test_an_extracted_model_has_a_line_with_its_findings(tmp_path: Path) -> None:
    found = {"cell": "one", "tokens_seen": 3e6, "val_loss_nats": 2.3456, "prefix_matching": 0.71, "onset_tokens": 8e5}
    (tmp_path / "summary.json").write_text(json.dumps(found))
    line = row_of(tmp_path / "summary.json")
    assert line.split() == ["one", "3.0", "M", "2.346", "0.71", "0.8", "M"]
    assert len(HEADING) == len(line)


def test_the_table_of_a_sweep_has_what_differs_and_names_the_model_with_the_lowest_loss(tmp_path: Path) -> None:
    told = {5e5: replace(FOUND, tokens_seen=3_000_000, val_loss_nats=2.5), 9e5: replace(FOUND, val_loss_nats=2.25)}
    for number, (tokens, evaluation) in enumerate(told.items()):
        run = tmp_path / f"run{number}"
        (run / "checkpoints").mkdir(parents=True)
        (run / "checkpoints" / "00000007.safetensors").touch()
        (run / "log.jsonl").write_bytes(
            json_lines([replace(evaluation, prefix_matching=[[0.0]], tokens_seen=0), evaluation])
        )
        progress.note(tmp_path / "jobs" / str(number), number, ["seed=3", f"train.tokens={tokens:.0f}"], run)
    progress.note(tmp_path / "jobs" / "2", 2, ["seed=3", "train.tokens=0"])
    heading, *lines, _, command = progress.told(tmp_path / "jobs", {"paths": ["my texts/*.txt"]}).splitlines()
    assert heading.split("  ")[0] == "overrides"
    assert [line.split() for line in lines] == [
        ["train.tokens=500000", "3.0", "M", "2.500", "0.60", "1.5", "M"],
        ["train.tokens=900000", "91", "2.250", "0.60", "46"],
        ["train.tokens=0", "failed"],
    ]
    assert len({len(line.rstrip()) for line in (heading, *lines[:2])}) == 1
    assert shlex.split(command)[:3] == ["make", "extract", f"WEIGHTS={tmp_path}/run1/checkpoints/00000007.safetensors"]
    assert "TEXT='my texts/*.txt' ARGS=--out=imported/run1" in command


@pytest.mark.parametrize(
    ("cores", "gib", "limit", "gpu", "jobs"),
    [
        (2, 24, None, False, 2),
        (16, 15, None, False, 6),
        (1, 2, None, False, 1),
        (16, 128, None, True, 1),
        (16, 128, "max", False, 16),
        (16, 128, "8589934592", False, 3),
    ],
)
def test_without_jobs_one_model_per_core_where_memory_allows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cores: int, gib: int, limit: str | None, gpu: bool, jobs: int
) -> None:
    monkeypatch.delenv(pool.JOBS, raising=False)
    if limit:
        (tmp_path / "memory.max").write_text(limit + "\n")
    monkeypatch.setattr(pool, "CONTAINER", tmp_path / "memory.max")
    monkeypatch.setattr(pool, "cores", lambda: cores)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gib * 2**18}.get)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert pool.at_a_time() == jobs


@pytest.mark.parametrize(
    ("cores", "jobs", "threads"), [(8, 2, 2), (4, 2, 2), (3, 2, 1), (2, 2, 1), (2, 7, 1), (8, 7, 1)]
)
def test_jobs_share_the_cores(monkeypatch: pytest.MonkeyPatch, cores: int, jobs: int, threads: int) -> None:
    class Job:
        launcher = {"n_jobs": jobs}  # noqa: RUF012

    monkeypatch.setattr(pool.HydraConfig, "initialized", lambda: True)
    monkeypatch.setattr(pool.HydraConfig, "get", lambda: Job)
    monkeypatch.setattr(pool, "cores", lambda: cores)
    assert pool.threads() == threads


def test_jobs_must_be_a_number(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").touch()
    for jobs in ("many", "0", "-1"):
        done = command(tmp_path, "pipelines.repro", f"--jobs={jobs}")
        said = f"\nerror: JOBS: expected how many models to process at a time, at least 1, got {jobs!r}\n"
        assert (done.returncode, done.stderr) == (1, said)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return what `make repro` calls in a project with models A and B, of which only A has been made: DVC fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text("{}")
    (tmp_path / "models" / "A").mkdir(parents=True)
    (tmp_path / "circuits").mkdir()
    found: list[str] = []
    monkeypatch.setattr(repro, "dvc", lambda *given: found.append(" ".join(given)) or 7)
    monkeypatch.setattr(repro, "run", lambda *given: found.extend(given) or 0)
    monkeypatch.setattr(grid, "cells", lambda _: {"A": {}, "B": {}})
    return found


def test_after_a_failed_model_the_report_is_made_without_it(
    called: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert repro.repro() == 7
    assert called == ["repro", "pipelines.extract", *repro.REPORT]
    assert "the report was made without these models" in capsys.readouterr().err


@pytest.mark.parametrize(("made", "stages"), [((), ()), (("A", "B"), ()), (("A",), ("extract",))])
def test_where_no_model_failed_or_no_report_was_asked_for_none_is_made(
    called: list[str], tmp_path: Path, made: tuple[str, ...], stages: tuple[str, ...]
) -> None:
    (tmp_path / "models" / "A").rmdir()
    for name in made:
        (tmp_path / "models" / name).mkdir()
    assert repro.repro(*stages) == 7
    assert called == [" ".join(("repro", *stages))]


def test_an_interrupt_leaves_dvc_its_own_and_makes_no_report(
    called: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repro, "dvc", lambda *_: 130)
    assert repro.repro() == 130
    assert called == []
    assert capsys.readouterr().err == "\ninterrupted; run the same command again to go on\n"


def test_an_interrupt_while_dvc_runs_waits_for_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        os.kill(os.getpid(), signal.SIGINT)
        return subprocess.CompletedProcess(command, 0)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(repro.subprocess, "run", run)
    assert repro.dvc("repro") == 130
    assert signal.getsignal(signal.SIGINT) == before


def test_asking_whether_there_is_anything_to_do_needs_no_torch() -> None:
    """Importing torch would take longer than the answer."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    asks = "import sys, pipelines.repro; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asks], env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == 0


def test_a_second_command_says_for_whom_it_waits_and_then_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".dvc" / "tmp").mkdir(parents=True)
    hold = (
        "import sys\nfrom pathsum.core.store import held\nfrom pipelines import repro\n"
        "with held(repro.LOCK, repro.WORK):\n    print('held', flush=True)\n    sys.stdin.read()"
    )

    def start() -> subprocess.Popen[str]:
        env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        return subprocess.Popen(
            [sys.executable, "-c", hold], cwd=tmp_path, env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    with start() as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with start() as second:
            assert second.stderr is not None
            assert f"waiting for process {first.pid}, which computes" in second.stderr.readline()
            assert first.communicate("", timeout=60) == ("", "")
            assert second.communicate("", timeout=60) == ("held\n", "")
        assert first.returncode == second.returncode == 0
