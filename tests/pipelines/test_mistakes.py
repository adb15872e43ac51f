"""A mistake on the command line of a stage, or in a file that it reads, ends in one sentence and not in a traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pathsum.core.storage import parse_json, read_json, read_lines, read_records
from pathsum.records.evaluation import Device
from pipelines import paths
from pipelines.paths import ROOT, model_of, params, section
from pipelines.train_cell import set_threads
from tests.commands import command

HAS = (ROOT / "params.yaml").read_text()


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("train_cell", ["L2H4S9"], "got L2H4S9; did you mean L2H4S"),
        ("train_cell", ["a\x1b[31m\x07"], "got a\\x1b[31m\\x07; it has L2H2S7, "),
        ("train_cell", ["L0S5", "L2H4S5"], "expected the name of one model of params.yaml, got L0S5 L2H4S5"),
        ("train_cell", [], "expected the file data/tokens/train.json, found none; `make repro` writes"),
        ("extract", ["x"], "expected no arguments, got x; its settings are in conf/"),
        ("verify", [], "expected the file data/preregistration.json, found none; `make repro` writes"),
        ("report", [], "data/statistics: manifest.json is missing; delete this folder"),
        ("repro", [], "expected dvc.yaml in"),
        ("compose", [], "found none; run this in the root of the repository"),
        ("scratch", [], "expected one folder to copy the project to"),
        ("compare", [], "expected reports/metrics.json in this folder, got none"),
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


def test_a_section_that_is_absent_is_named(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("sweep: {}")
    done = command(tmp_path, "pipelines.tokenize")
    assert done.stderr == "\nerror: params.yaml: expected the key corpus, got none; run `make params` to write it\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "params.yaml: expected the sections that `make params` writes, got no section; run it again"),
        (b"- a", "params.yaml: expected the sections"),
        (b"cells: [1", "params.yaml: expected YAML, got something else"),
        (b"cells: [1", r"correct the file, or run `make params` to write it again"),
        (b"\xff\xfe", "params.yaml: expected YAML, got something else"),
        (b"cells: &a [*a]", "params.yaml: expected values, got one that contains itself; run `make params` again"),
    ],
)
def test_a_params_file_that_is_none_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        section(params(tmp_path), "cells", "L2H4S5")


@pytest.mark.parametrize("arguments", [["."], [""], ["../project"]])
def test_a_copy_replaces_no_folder_with_other_files(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "mine.py").write_text("unsaved work")
    done = command(tmp_path / "project", "pipelines.scratch", *arguments)
    assert done.returncode == 1
    assert "expected " in done.stderr
    assert (tmp_path / "project" / "src" / "mine.py").read_text() == "unsaved work"


def test_a_copy_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = command(tmp_path, "pipelines.scratch", "file")
    assert (done.returncode, done.stderr) == (1, "\nerror: file: expected a folder, got a file; give another folder\n")


def test_a_copy_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for folder, why in (("file/copy", "Not a directory"), ("loop", "File exists"), ("loop/copy", "Too many levels of")):
        done = command(tmp_path, "pipelines.scratch", folder)
        assert f"\nerror: {folder}: expected a folder that can be made ({why}" in done.stderr
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 2)


def test_an_earlier_copy_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "project")], check=True)
    (tmp_path / "project" / "a.txt").write_text("a")
    Path(os.fsdecode(os.fsencode(tmp_path / "project") + b"/\xff.txt")).write_text("a name that is no UTF-8")
    for _ in range(2):
        assert command(tmp_path / "project", "pipelines.scratch", str(tmp_path / "copy")).returncode == 0
    assert (tmp_path / "copy" / "a.txt").read_text() == "a"
    (tmp_path / "copy" / ".git" / "pathsum-copy").unlink()
    assert "expected a new or empty folder" in command(tmp_path / "project", "pipelines.scratch", "../copy").stderr


def test_a_copy_in_a_hook_of_git_is_a_repository_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "project")], check=True)
    (tmp_path / "project" / "a.txt").write_text("a")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "project" / ".git"))  # as git does for hooks
    assert command(tmp_path / "project", "pipelines.scratch", str(tmp_path / "copy")).returncode == 0
    assert (tmp_path / "copy" / "a.txt").read_text() == "a"
    assert (tmp_path / "copy" / ".git" / "HEAD").exists()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path, said in (("a.json", "expected the file a.json, found none; `make repro` writes"), (".", ".: Is a dir")):
        with pytest.raises(OSError, match="directory") as caught:
            Path(path).read_bytes()
        assert paths.message(caught.value).startswith(said)


def test_the_extra_of_a_missing_package_is_named() -> None:
    said = paths.message(ModuleNotFoundError("No module named 'ray'", name="ray"))
    assert said == "expected the package ray, found none; run `pip install 'pathsum[ray]'`"


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


def test_a_project_without_git_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "metrics.json").write_text("{}")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))  # a folder above may be a repository
    told = command(tmp_path, "pipelines.compare", "main").stderr
    assert "because git finds no repository here; no such file. Git says: fatal: not a git repository" in told
    monkeypatch.setenv("PATH", "")
    for name, said in (("compare", "BASE: a revision needs git"), ("scratch", "expected git, which lists")):
        assert said in command(tmp_path, f"pipelines.{name}", "main").stderr


@pytest.mark.parametrize("given", ["two", "0", "1.5", "100000"])
def test_a_number_of_threads_is_one(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("PATHSUM_THREADS", given)
    with pytest.raises(ValueError, match=f"PATHSUM_THREADS: expected a number of threads from 1 to 256, got '{given}'"):
        set_threads()


def test_a_model_is_found_by_its_name() -> None:
    assert model_of(["L2H4S5"], ["L0S5", "L2H4S5"]) == "L2H4S5"


RIGHT = {"name": "x", "processes": 1, "peak_flops": None}


def device(tmp_path: Path, text: str) -> Device:
    (tmp_path / "device.json").write_text(text)
    return read_json(tmp_path / "device.json", Device)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "[1]", '"a"', "{", '{"a": NaN}', "\0", "null"])
def test_a_record_that_is_no_json_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"device.json: expected "):
        device(tmp_path, text)


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
