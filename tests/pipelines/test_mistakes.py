"""A mistake on the command line of a stage, or in a file that it reads, ends in one sentence and not in a traceback."""

from __future__ import annotations

import json
import multiprocessing
import operator
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from pathsum.core.storage import parse_json, read_json, read_lines, read_records
from pathsum.probes.evaluation import Device
from pipelines import paths
from pipelines.paths import ROOT, model_of, params, section
from pipelines.results import read_results
from pipelines.train_cell import set_threads
from tests.commands import command

GRAPH = "stages: {check: {}}"
HAS = "cells:\n  L0S5: {seed: 2}\n  L2H4S5: {seed: 2}\n"


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("train_cell", [], "expected the name of one model of params.yaml, got none; it has L0S5, L2H4S5"),
        ("train_cell", ["L2H4S9"], "got L2H4S9; did you mean L2H4S5?"),
        ("train_cell", ["a\x1b[31m\x07"], "got a\\x1b[31m\\x07; it has L0S5, L2H4S5"),
        ("extract", ["../x"], "expected the name of one model of params.yaml, got ../x; it has"),
        ("extract", ["L0S5", "L2H4S5"], "expected the name of one model of params.yaml, got L0S5 L2H4S5"),
        ("tokenize", [], "params.yaml: expected the key corpus, got none; run `make params`"),
        ("statistics", [], "params.yaml: expected the key corpus, got none"),
        ("calibrate", [], "params.yaml: expected the key calibrate, got none"),
        ("verify", [], "expected the file data/preregistration.json, found none; `make repro` writes"),
        ("report", [], "params.yaml: expected the key sweep, got none"),
        ("repro", ["--modls"], "expected none or one of --models, --report, --tokens, got --modls; --help explains"),
        ("compose", [], "found none; run this in the root of the repository"),
        ("scratch", [], "expected one folder to copy the project to"),
        (
            "torture",
            ["--graph", "/etc"],
            "--graph: expected a folder that `pipelines/smoke.sh",
        ),
        ("torture", ["--minutes", "nan"], "MINUTES: expected a number from 0 to 10,080, got nan"),
        ("torture", ["--minutes", "-1"], "MINUTES: expected a number from 0 to 10,080, got -1.0"),
        ("compare", [], "expected reports/metrics.json in this folder, got none"),
        ("torture", ["--graph", "x" * 300], "expected a path that the system can open, got one that is too long"),
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


@pytest.mark.parametrize("module", ["train_cell", "extract"])
def test_a_stage_of_one_model_explains_itself(tmp_path: Path, module: str) -> None:
    (tmp_path / "params.yaml").write_text(HAS)
    done = command(tmp_path, f"pipelines.{module}", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Stage `")


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


@pytest.mark.parametrize("cells", ["null", "[]", "{}"])
def test_a_params_file_without_models_is_named(tmp_path: Path, cells: str) -> None:
    (tmp_path / "params.yaml").write_text(f"cells: {cells}\nsweep: {{controls: {{}}}}")
    said = "params.yaml: expected (the key cells|models by name under cells), got none; run `make params`"
    with pytest.raises(ValueError, match=said):
        read_results(tmp_path)
    done = command(tmp_path, "pipelines.train_cell", "L2H4S5")
    assert re.match(f"\nerror: {said}", done.stderr)


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


@pytest.mark.parametrize(
    ("graph", "values", "arguments", "said"),
    [
        (
            None,
            HAS,
            [],
            "dvc.yaml: expected the stages of the graph, got none; put it back, or run this in the repository's root",
        ),
        ("", HAS, [], "dvc.yaml: expected the stages of the graph, got none"),
        ("stages: [", HAS, [], "dvc.yaml: expected YAML, got something else"),
        (GRAPH, None, [], "expected params.yaml in this folder; run `make params`"),
        (GRAPH, "", [], "params.yaml: expected the sections that `make params` writes"),
        (GRAPH, "cells: 3", [], "params.yaml: expected models by name under cells, got none; run `make params`"),
        (GRAPH, HAS, ["two"], "JOBS: expected how many models to process at a time, at least 1, got 'two'"),
        (GRAPH, HAS, ["0"], "JOBS: expected how many models to process at a time, at least 1, got '0'"),
        (GRAPH, HAS, ["1", "2"], "JOBS: expected how many models to process at a time, at least 1, got '1 2'"),
        (GRAPH, HAS, ["--models", "--report"], "expected one of --models, --report, --tokens, got --models --report"),
    ],
)
def test_a_graph_that_cannot_be_computed_is_not_up_to_date(
    tmp_path: Path, graph: str | None, values: str | None, arguments: list[str], said: str
) -> None:
    for name, content in (("dvc.yaml", graph), ("params.yaml", values)):
        if content is not None:
            (tmp_path / name).write_text(content)
    done = command(tmp_path, "pipelines.repro", *arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("in_the_way", "is_folder", "said"),
    [
        ("runs", False, "runs/a.json: expected a folder at runs, got a file; move it away"),
        ("runs/a.json", True, "runs/a.json: expected a file, got a folder; move it away"),
        (".", True, "expected the file runs/a.json, found none; `make repro` writes every file"),
    ],
)
def test_a_file_or_folder_in_the_way_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_the_way: str, is_folder: bool, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if is_folder:
        Path(in_the_way).mkdir(parents=True, exist_ok=True)
    else:
        Path(in_the_way).write_text("")
    with pytest.raises(OSError, match="directory") as caught:
        Path("runs/a.json").read_bytes()
    assert said in paths.message(caught.value)


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


@pytest.mark.parametrize("name", ["math", "socket"])
def test_a_file_here_hides_no_module_from_the_workers_of_a_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Each run ended in "a process of this stage was ended", with a traceback of this file."""
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.py").write_text("raise SystemExit('a user own file was run')")
    with paths.stage(1), ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as worker:
        assert worker.submit(operator.add, 2, 3).result() == 5
    assert "PYTHONSAFEPATH" not in os.environ


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
    (tmp_path / "dvc.yaml").write_text(GRAPH)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config").write_text("[core]\n")
    assert "expected a git repository in " in command(tmp_path, "pipelines.repro").stderr
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "metrics.json").write_text("{}")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))  # a folder above may be a repository
    told = command(tmp_path, "pipelines.compare", "main").stderr
    assert "because git finds no repository here; no such file. Git says: fatal: not a git repository" in told
    monkeypatch.setenv("PATH", "")
    for name, said in (("compare", "BASE: a revision needs git"), ("scratch", "expected git, which lists")):
        assert said in command(tmp_path, f"pipelines.{name}", "main").stderr


@pytest.mark.parametrize("given", ["two", "0", "1.5", "100000", ""])
def test_a_number_of_threads_is_one(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("PATHSUM_THREADS", given)
    with pytest.raises(ValueError, match=f"PATHSUM_THREADS: expected a number of threads from 1 to 256, got '{given}'"):
        set_threads()


def test_a_model_is_found_by_its_name() -> None:
    assert model_of(["L2H4S5"], params(ROOT)) == "L2H4S5"


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
