"""`make repro` and `make sweep`: the models that are started, their threads, and messages about mistakes, without
DVC."""

from __future__ import annotations

import errno
import json
import os
import resource
import shlex
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pathsum.core.locks import held
from pathsum.core.storage import json_lines
from pipelines import repro, sweeps
from pipelines.paths import ROOT, SO_FAR, stage
from pipelines.progress import Progress
from tests.commands import command
from tests.permissions import ordinary_user
from tests.tracking.found import FOUND


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, int]:
    """Return the threads of each `dvc` call by model, or by its last argument. The call for model B fails."""
    found: dict[str, int] = {}

    def dvc(*arguments: str, threads: int = 2, line: int = 0, out: int | None = None) -> int:
        name = arguments[-1].removeprefix("extract@")
        found[name] = threads
        return -9 if name == "B" else 0

    monkeypatch.setattr(repro, "dvc", dvc)
    monkeypatch.chdir(tmp_path)
    sizes = {"A": (0, 4), "B": (1, 4), "C": (2, 4), "D": (2, 6)}
    cells = {
        name: {"model": {"n_layers": n_layers, "n_heads": heads}, "train": {"tokens": 1000}}
        for name, (n_layers, heads) in sizes.items()
    }
    (tmp_path / "params.yaml").write_text(json.dumps({"cells": cells}))
    return found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that ``require_graph`` accepts, and work in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path / "settings"))
    for folder in ("models", "reports", ".git"):
        Path(folder).mkdir()
    Path("dvc.yaml").write_text("stages: {a: {cmd: b}}")
    Path("params.yaml").write_text("cells: {L0S5: {}}")
    repro.require_graph()
    return tmp_path


@pytest.mark.parametrize("name", ["models", "reports", ""])
def test_a_folder_that_cannot_be_written_is_named_before_any_work(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).absolute() != project / name and access(path, mode))
    with pytest.raises(ValueError, match=f"{name or project.name}: expected a folder that can be written"):
        repro.require_graph()


def test_a_link_to_nothing_in_conf_is_named_before_any_work(project: Path) -> None:
    (project / "conf").mkdir()
    (project / "conf" / ".#config.yaml").symlink_to("me@host.1:2")  # the lock of an editor
    repro.require_graph()
    (project / "conf" / "profile").symlink_to("nowhere")
    with pytest.raises(ValueError, match="conf/profile: expected a file or folder, got a link to none; put it back"):
        repro.require_graph()


@pytest.mark.usefixtures("project")
def test_a_low_limit_of_the_shell_is_named_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for of, option, unit, least, what in repro.LIMITS:
        for most, allowed in ((least - 1, False), (least, True), (resource.RLIM_INFINITY, True)):
            given = {of: (most * unit if most > 0 else most, resource.RLIM_INFINITY)}
            monkeypatch.setattr(
                resource, "getrlimit", lambda limit, given=given: given.get(limit, (resource.RLIM_INFINITY,) * 2)
            )
            said = rf"at least {least:,} {what}, got {most:,}; raise it with `ulimit -S -{option} {least}`, or open"
            with nullcontext() if allowed else pytest.raises(ValueError, match=said):
                repro.require_graph()


@pytest.mark.parametrize(
    ("cores", "jobs", "threads"), [(8, 2, 2), (4, 2, 2), (3, 2, 1), (2, 2, 1), (2, 7, 1), (8, 7, 2)]
)
def test_workers_share_the_cores(
    begun: dict[str, int], monkeypatch: pytest.MonkeyPatch, cores: int, jobs: int, threads: int
) -> None:
    monkeypatch.setattr(repro, "cores", lambda: cores)
    assert repro.side_by_side(["A", "C"], jobs) == 0
    assert begun == {"A": threads, "C": threads}


def test_a_failing_cell_does_not_stop_the_others(begun: dict[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    assert repro.side_by_side(["A", "B", "C", "D"], 2) == 1
    assert set(begun) == {"A", "B", "C", "D"}
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("model ")
    assert [line.split()[0] for line in said if "failed" in line and line.startswith("B ")] == ["B"]


def test_only_cells_that_are_out_of_date_are_begun(begun: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro, "stale", lambda: {"train@C", "extract@C", "extract@A", "verify", "report"})
    assert repro.repro(2) == 0
    assert set(begun) == {"A", "C", "repro"}
    assert list(begun)[-1] == "repro"


def test_a_small_model_of_two_layers_and_of_one_come_first_and_then_the_longest(begun: dict[str, int]) -> None:
    assert repro.cells({"train@A", "train@B", "extract@C", "train@D", "verify"}) == ["C", "B", "D", "A"]
    assert repro.cells({"train@A", "train@D"}) == ["D", "A"]


def test_a_finished_model_has_a_line_with_its_findings_and_the_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = {name: {"model": {"n_layers": 1}, "train": {"tokens": 1e6}} for name in ("one", "other")}
    clock = iter([0.0, 120.0, 240.0])
    monkeypatch.setattr("pipelines.progress.time.monotonic", lambda: next(clock))
    progress, summary = Progress(cells, list(cells)), tmp_path / "summary.json"
    found = {"tokens_seen": 3e6, "val_loss_nats": 2.3456, "prefix_matching": 0.71, "onset_tokens": 8e5}
    summary.write_text(json.dumps(found))
    heading, line = progress.line("one", summary, failed=False).splitlines()
    assert line.split() == ["one", "3.0", "M", "2.346", "0.71", "0.8", "M", "2", "min"]
    assert len(heading) == len(line)
    assert progress.line("other", tmp_path / "absent", failed=True).split() == ["other", "failed", "–"]


def test_the_table_of_a_sweep_has_what_differs_and_names_the_model_with_the_lowest_loss(tmp_path: Path) -> None:
    told = {5e5: replace(FOUND, tokens_seen=3_000_000, val_loss_nats=2.5), 9e5: replace(FOUND, val_loss_nats=2.25)}
    for number, (tokens, evaluation) in enumerate(told.items()):
        run = tmp_path / f"run{number}"
        (run / "checkpoints").mkdir(parents=True)
        (run / "checkpoints" / "00000007.safetensors").touch()
        (run / "log.jsonl").write_bytes(
            json_lines([replace(evaluation, prefix_matching=[[0.0]], tokens_seen=0), evaluation])
        )
        sweeps.note(tmp_path / "jobs" / str(number), number, ["seed=3", f"train.tokens={tokens:.0f}"], run)
    sweeps.note(tmp_path / "jobs" / "2", 2, ["seed=3", "train.tokens=0"])
    heading, *lines, _, command = sweeps.told(tmp_path / "jobs", {"paths": ["my texts/*.txt"]}).splitlines()
    assert heading.split("  ")[0] == "overrides"
    assert [line.split() for line in lines] == [
        ["train.tokens=500000", "3.0", "M", "2.500", "0.60", "1.5", "M"],
        ["train.tokens=900000", "91", "2.250", "0.60", "46"],
        ["train.tokens=0", "failed"],
    ]
    assert len({len(line.rstrip()) for line in (heading, *lines[:2])}) == 1
    assert shlex.split(command)[:3] == ["make", "extract", f"WEIGHTS={tmp_path}/run1/checkpoints/00000007.safetensors"]
    assert "TEXT='my texts/*.txt' ARGS=--out=imported/run1" in command


def test_one_cell_alone_has_the_whole_machine(begun: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro, "stale", lambda: {"train@C"})
    monkeypatch.setattr(repro, "cores", lambda: 2)
    assert repro.repro(2) == 0
    assert begun == {"C": 2, "repro": 2}


@pytest.mark.parametrize(
    ("fails", "ran"), [("", ["pipelines.verify", "pipelines.report"]), ("pipelines.verify", ["pipelines.verify"])]
)
def test_a_report_can_be_made_before_all_models_are(
    begun: dict[str, int], monkeypatch: pytest.MonkeyPatch, fails: str, ran: list[str]
) -> None:
    modules: list[str] = []

    def run(command: list[str], env: dict[str, str], check: bool) -> subprocess.CompletedProcess[str]:
        assert set(env[SO_FAR].split()) == {"train@C", "extract@C", "report"}  # what they are to leave out
        modules.append(command[-1])
        return subprocess.CompletedProcess(command, int(command[-1] == fails))

    monkeypatch.setattr(repro, "stale", lambda: {"train@C", "extract@C", "report"})
    monkeypatch.setattr(repro.subprocess, "run", run)
    assert repro.report(0) == int(bool(fails))
    assert modules == ran
    assert begun == {}  # DVC is not asked: it would train


def test_a_report_renews_what_it_rests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []
    found = [{"check", "verify"}, {"calibrate", "verify", "report"}]
    monkeypatch.setattr(repro, "stale", lambda: found.pop(0))
    monkeypatch.setattr(repro, "cells", lambda _: [])
    monkeypatch.setattr(repro, "dvc", lambda *given: calls.append(given[2:]) or 0)
    assert repro.report(0) == 0
    assert calls == [("check",), ("calibrate", "verify"), ("--force", "report")]


def test_a_report_on_other_tokens_is_not_made_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro, "stale", lambda: {"tokenize"})
    monkeypatch.setattr(repro, "cells", lambda _: [])
    monkeypatch.setattr(repro, "report_so_far", sorted)
    assert repro.report(0) == ["tokenize"]


def test_nothing_out_of_date_begins_nothing(begun: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro, "stale", set)
    assert repro.repro(2) == 0
    assert begun == {}


@pytest.mark.parametrize("report", [0, 1])
def test_a_failed_cell_is_named_and_the_report_is_not_promised(
    begun: dict[str, int], monkeypatch: pytest.MonkeyPatch, report: int
) -> None:
    monkeypatch.setattr(repro, "dvc", lambda *arguments, **_: report if "report" in arguments else 1)
    monkeypatch.setattr(repro, "stale", lambda: {"train@B", "report"})
    said = "the report could not be made either" if report else "the report was made without them and names them"
    with pytest.raises(ValueError, match=f"expected 4 models, got all but B, .*{said}"):
        repro.repro(2)


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
    if limit:
        (tmp_path / "memory.max").write_text(limit + "\n")
    monkeypatch.setattr(repro, "CONTAINER", tmp_path / "memory.max")
    monkeypatch.setattr(repro, "cores", lambda: cores)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gib * 2**18}.get)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert repro.at_a_time() == jobs


def test_what_dvc_status_refuses_is_left_to_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)  # no repository
    with pytest.raises(SystemExit) as left:
        repro.stale()
    assert left.value.code not in (0, None)


def test_what_every_cell_needs_failing_blames_no_cell(
    begun: dict[str, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(repro, "dvc", lambda *arguments: 255)
    monkeypatch.setattr(repro, "stale", lambda: {"check", "tokenize", "train@A"})
    assert repro.repro(1) == repro.repro(2) == 255
    assert capsys.readouterr().err.count("fix the cause above and run the same command again") == 2


def test_an_interrupted_stage_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left, stage(threads=0):
        raise KeyboardInterrupt
    assert left.value.code == 130
    assert capsys.readouterr().err == ""


def test_a_command_without_arguments_ignores_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["verify", "--force"])
    with stage(threads=0):
        pass
    with pytest.raises(SystemExit) as left, stage(threads=0, arguments=False):
        pytest.fail("the command ran")
    assert left.value.code == 1
    assert "expected no arguments, got --force" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "error: the disk of {} is full; make room and run the same command"),
        (errno.EFBIG, "error: a file would be larger than `ulimit -f` allows; raise it and run the same command"),
    ],
)
def test_a_full_disk_and_a_limit_on_file_sizes_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left, stage(threads=0):
        raise OSError(number, os.strerror(number))
    assert left.value.code == 1
    assert said.format(tmp_path) in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_named(tmp_path: Path) -> None:
    print_a_line = "from pipelines.paths import stage\nwith stage(threads=0): print(1)"
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [sys.executable, "-c", print_a_line],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = "the disk to which standard output goes is full; make room and run the same command again to go on"
    assert (told.returncode, told.stderr) == (1, f"\nerror: {said}\n")


def test_a_process_that_the_system_ended_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left, stage(threads=0):
        raise BrokenProcessPool
    assert left.value.code == 1
    said = "a process of this stage was ended, as the system does when memory is short; run the same command again"
    assert capsys.readouterr().err == f"\nerror: {said}\n"


@pytest.mark.parametrize(
    ("path", "named"),
    [("shut/tokens/train.bin", "shut"), ("link", "{folder}/shut"), ("{folder}/shut/train.bin", "{folder}/shut")],
    ids=["below it", "a link into it", "absolute"],
)
def test_a_folder_without_permission_is_named(
    path: str, named: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ordinary_user() as folder:
        monkeypatch.chdir(folder)
        Path("link").symlink_to("shut/text.txt")
        Path("shut").mkdir(mode=0)
        with pytest.raises(SystemExit) as left, stage(threads=0):
            Path(path.format(folder=folder)).read_bytes()
        Path("link").unlink()
        monkeypatch.undo()
    said = f"error: {named.format(folder=folder)}: Permission denied; make this folder accessible (chmod u+rwx)"
    assert left.value.code == 1
    assert said in capsys.readouterr().err


def test_asking_whether_there_is_anything_to_do_needs_no_torch() -> None:
    """Importing torch would take longer than the answer."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    asks = "import sys, pipelines.repro; sys.exit('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", asks], env={**os.environ, "PYTHONPATH": path}, check=False).returncode
        == 0
    )


def test_training_needs_neither_torchs_compiler_nor_wandbs_launch(tmp_path: Path) -> None:
    """Importing them takes 2.6 s of processor time. Without HOME, W&B has nothing to complain about."""
    trains = """
import sys
import torch
from pathsum.config import TrackingConfig
from pathsum.training.optimizer import Muon
from pathsum.tracking.tracker import Run, mirror
from pipelines.paths import Path, stage
weight = torch.nn.Parameter(torch.eye(2)[None])
config = TrackingConfig(mode="offline", project="p", group="g", entity="")
with stage(0), mirror(config, Run("a", "a", "t"), Path.cwd()):
    for optimizer in (torch.optim.AdamW([weight], fused=True), Muon([weight], 0.1, 0.9, 0.0)):
        weight.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        optimizer.load_state_dict(optimizer.state_dict())
print(*({"torch._dynamo", "wandb.sdk.launch"} & set(sys.modules)))
"""
    private = ("HOME", "XDG_CACHE_HOME", "WANDB_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(private)}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    python = [sys.executable, "-c", trains]
    done = subprocess.run(python, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


def test_jobs_must_be_a_number(tmp_path: Path) -> None:
    for jobs in ("many", "0", "-1"):
        done = command(tmp_path, "pipelines.repro", jobs)
        assert done.returncode == 1
        assert (
            done.stderr == f"\nerror: JOBS: expected how many models to process at a time, at least 1, got {jobs!r}\n"
        )


def test_a_report_does_not_wait_for_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repro, "stale", set)
    monkeypatch.setattr(repro, "cells", lambda _: [])
    monkeypatch.setattr(repro, "dvc", lambda *_: 3)
    monkeypatch.setattr(repro, "status", set)
    monkeypatch.setattr(repro, "report_so_far", lambda _: 5)
    assert repro.alone(repro.report, 0) == 3
    with held(repro.LOCK, repro.waiting):
        assert repro.alone(repro.report, 0) == 5


def test_training_waits_for_tokens_that_another_process_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    repro.TMP.mkdir(parents=True)
    repro.wait_for_tokens()  # nobody writes them
    assert capsys.readouterr().err == ""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            repro.TOKENS.mkdir(parents=True)
            for part in ("train", "tuning"):
                (repro.TOKENS / f"{part}.json").touch()

    monkeypatch.setattr("pipelines.repro.time.sleep", sleep)
    with held(repro.LOCK, repro.waiting):
        repro.wait_for_tokens()
    assert len(slept) == 3
    said = f"pathsum: waiting for process {os.getpid()}, which computes results in this folder\n"
    assert capsys.readouterr().err == said


def test_a_second_command_says_for_whom_it_waits_and_then_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".dvc" / "tmp").mkdir(parents=True)
    hold = (
        "import sys\nfrom pathlib import Path\nfrom pathsum.core.locks import held\nfrom pipelines import repro\n"
        "with held(repro.LOCK, repro.waiting):\n    print('held', flush=True)\n    sys.stdin.read()"
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


def test_a_killed_dvc_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repro, "DVC", (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"))
    assert repro.dvc("repro") == -9
    with pytest.raises(SystemExit, match="-9"):
        repro.stale()
    assert capsys.readouterr().err.count("DVC was ended by signal 9, as the system does when memory is short") == 2
