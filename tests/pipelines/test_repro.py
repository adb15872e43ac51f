"""`make repro` and the pool of its models: order, threads, and messages about mistakes, without DVC."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipelines import grid, pool, repro
from pipelines.paths import ROOT, params
from tests.commands import command


def test_a_small_model_of_two_layers_and_of_one_come_first_and_then_the_longest() -> None:
    cells = grid.models(params(ROOT))
    names = list(cells)
    assert sorted(names) == sorted(grid.every(params(ROOT)))
    assert [(cells[n].model.n_layers, cells[n].model.n_heads) for n in names[:3]] == [(2, 2), (1, 2), (2, 8)]
    sizes = [(cells[n].model.n_layers, cells[n].model.n_heads) for n in names[2:]]
    assert sizes == sorted(sizes, reverse=True)
    assert cells[names[0]].train.tokens > 0


@pytest.mark.parametrize(
    ("cores", "gib", "limit", "gpu", "width", "jobs"),
    [
        (2, 24, None, False, 128, 2),
        (16, 15, None, False, 128, 6),
        (16, 24, None, False, 1024, 2),
        (1, 2, None, False, 128, 1),
        (16, 128, None, True, 128, 1),
        (16, 128, "max", False, 128, 16),
        (16, 128, "8589934592", False, 128, 3),
    ],
)
def test_without_jobs_one_model_per_core_where_memory_allows(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    cores: int,
    gib: int,
    limit: str | None,
    gpu: bool,
    width: int,
    jobs: int,
) -> None:
    monkeypatch.delenv(pool.JOBS, raising=False)
    if limit:
        (tmp_path / "memory.max").write_text(limit + "\n")
    monkeypatch.setattr(pool, "CONTAINER", tmp_path / "memory.max")
    monkeypatch.setattr(pool, "cores", lambda: cores)
    monkeypatch.setattr(pool, "params", lambda: {"model": {"n_ctx": 256, "d_model": width}})
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
    monkeypatch.setattr(grid, "every", lambda _: {"A": {}, "B": {}})
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
