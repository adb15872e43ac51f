"""A mistake on the command line of a stage, or in a file that it reads, ends in one sentence and not in a traceback."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from pathsum.core.storage import parse_json, read_json, read_lines, read_records
from pathsum.records.evaluation import Device
from pathsum.training.loop import TrainingDiverged
from pipelines import paths
from pipelines.paths import ROOT, params, section
from tests.commands import command

HAS = (ROOT / "params.yaml").read_text()


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("train_cell", ["L2H4S9"], "L2H4S9: no such model in params.yaml; did you mean L2H4S"),
        ("train_cell", ["a\x1b[31m\x07"], "a\\x1b[31m\\x07: no such model in params.yaml; known: L0S5, "),
        ("train_cell", [], "expected the file data/tokens/train.json, found none; `make repro` writes"),
        ("extract", ["x"], "expected no arguments, got x; its settings are in conf/"),
        ("verify", [], "expected the file data/preregistration.json, found none; `make repro` writes"),
        ("report", [], "data/statistics: manifest.json is missing; delete this folder"),
        ("repro", [], "expected dvc.yaml in"),
        ("compose", [], "found none; run this in the root of the repository"),
        ("compare", ["main"], "expected reports/metrics.json in this folder, got none"),
        ("scratch", ["."], "expected a new or empty folder or an earlier copy, got other files"),
        ("scratch", ["params.yaml"], "params.yaml: File exists"),
    ],
)
def test_a_command_says_what_it_expected(tmp_path: Path, module: str, arguments: list[str], said: str) -> None:
    (tmp_path / "params.yaml").write_text(HAS)
    done = command(tmp_path, f"pipelines.{module}", *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("\nerror: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["params.yaml"]  # nothing was written


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "params.yaml: expected the sections that `make params` writes, got no section; run it again"),
        (b"sweep: {}", "params.yaml: expected the key cells, got none; run `make params`"),
        (b"cells: [1", r"params.yaml: expected YAML, got something else .*; run `make params` again"),
        (b"\xff\xfe", "params.yaml: expected YAML, got something else"),
    ],
)
def test_a_params_file_that_is_none_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=f"(?s){said}"):
        section(params(tmp_path), "cells", "L2H4S5")


def test_an_earlier_copy_is_replaced_and_no_other_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "project")], check=True)
    (tmp_path / "project" / "a.txt").write_text("a")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "project" / ".git"))  # as git does for hooks
    assert command(tmp_path / "project", "pipelines.scratch", str(tmp_path / "copy")).returncode == 0
    monkeypatch.undo()
    assert command(tmp_path / "project", "pipelines.scratch", str(tmp_path / "copy")).returncode == 0
    assert (tmp_path / "copy" / "a.txt").read_text() == "a"
    assert (tmp_path / "copy" / ".git" / "HEAD").exists()
    (tmp_path / "copy" / ".git" / "pathsum-copy").unlink()
    assert "expected a new or empty folder" in command(tmp_path / "project", "pipelines.scratch", "../copy").stderr


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path, said in (("a.json", "expected the file a.json, found none; `make repro` writes"), (".", ".: Is a dir")):
        with pytest.raises(OSError, match="directory") as caught:
            Path(path).read_bytes()
        assert paths.message(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModuleNotFoundError("No module", name="ray"), "expected the package ray, found none; run `pip install 'paths"),
        (OSError(errno.ENOSPC, "full"), "the disk of .* is full; make room and run the same command again to go on"),
        (BrokenProcessPool(), "a process was ended, as the system does when memory is short; run the same command aga"),
        (MemoryError("9 GB"), "expected more memory .9 GB.; lower train.batch"),
        (TrainingDiverged("cell: the loss is nan"), "cell: the loss is nan"),
    ],
)
def test_what_stops_a_stage_is_told_with_what_helps(
    capsys: pytest.CaptureFixture[str], error: Exception, said: str
) -> None:
    with pytest.raises(SystemExit) as left, paths.stage(threads=0):
        raise error
    assert left.value.code == 1
    assert re.match(f"\nerror: {said}", capsys.readouterr().err)


@pytest.mark.parametrize("script", ["repro.py", "tokenize.py"])
def test_a_script_that_is_run_by_its_path_says_how_to_run_it(script: str) -> None:
    """Files of pipelines/ would stand in for modules of the standard library: a traceback."""
    told = subprocess.run(
        [sys.executable, f"pipelines/{script}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    said = "error: run scripts as modules from the repository's root, for example `python -m pipelines.repro`\n"
    assert (told.returncode, told.stdout, told.stderr) == (1, "", said)


def test_a_command_outside_its_environment_says_how_to_enter_it() -> None:
    bare = [sys.executable, "-S", "-m", "pipelines.repro"]  # without the packages that are installed
    told = subprocess.run(bare, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith("error: expected the packages of this project, but ")
    said = "has no torch and no dvc; run `make setup` once, and `. .venv/bin/activate` in each new shell\n"
    assert told.stderr.endswith(said)


def test_a_file_here_hides_no_module_of_python_or_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "pipelines").symlink_to(ROOT / "pipelines")
    for name in ("statistics", "random", "tokenize", "yaml", "torch", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a user own file was run')")
    asked = [sys.executable, "-m", "pipelines.train_cell"]
    told = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (told.returncode, told.stderr) == (
        1, "\nerror: expected params.yaml in this folder; run `make params` in the repository's root\n"
    )  # fmt: skip


def test_a_copy_of_the_project_runs_its_own_library(tmp_path: Path) -> None:
    """Its environment is that of the first folder: edits in the copy had no effect, and dvc.lock said that they had."""
    shutil.copytree(ROOT / "pipelines", tmp_path / "pipelines", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "src" / "pathsum").mkdir(parents=True)
    (tmp_path / "src" / "pathsum" / "__init__.py").write_text("raise SystemExit('the copy was run')")
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    told = subprocess.run(
        [sys.executable, "-m", "pipelines.verify"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert told.stderr == "the copy was run\n"


RIGHT = {"name": "x", "processes": 1, "peak_flops": None}


def device(tmp_path: Path, text: str) -> Device:
    (tmp_path / "device.json").write_text(text)
    return read_json(tmp_path / "device.json", Device)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"processes": "1"}, "processes of a Device: expected a valid integer, got '1'; run `dvc repro`"),
        ({"processes": True}, "processes of a Device: expected a valid integer, got True"),
        ({"peak_flops": [1]}, "peak_flops of a Device: expected a valid number"),
        ({"more": 1}, "expected a Device; missing fields .*, unknown fields .'more'"),
    ],
)
def test_a_field_of_another_type_is_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    assert device(tmp_path, json.dumps(RIGHT)) == Device("x", 1, None)
    with pytest.raises(ValueError, match=f"device.json: {said}"):
        device(tmp_path, json.dumps(RIGHT | change))
    (tmp_path / "many.json").write_text(json.dumps({"a": RIGHT | change}))
    with pytest.raises(ValueError, match=said):
        read_records(tmp_path / "many.json", Device)
    (tmp_path / "lines").write_text(f"{json.dumps(RIGHT)}\n{json.dumps(RIGHT | change)}\n")
    with pytest.raises(ValueError, match=said):
        read_lines(tmp_path / "lines", Device)


def test_a_half_line_is_named_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text(f'{json.dumps(RIGHT)}\n{{"name"')
    with pytest.raises(ValueError, match="lines, line 2: expected JSON, got other text"):
        read_lines(tmp_path / "lines", Device)
    with pytest.raises(ValueError, match="there: expected JSON, got other text .Infinity is no JSON"):
        parse_json("Infinity", "there")
