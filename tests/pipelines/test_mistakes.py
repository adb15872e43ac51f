"""A mistake on the command line of a stage, or in a file that it reads, ends in one sentence and not in a traceback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pathsum.core.storage import parse_json, read_json, read_lines, read_records
from pathsum.probes.evaluation import Device
from pipelines.paths import ROOT, model_of, params, section
from tests.commands import command

HAS = "cells:\n  L0S2: {seed: 2}\n  L2H4S2: {seed: 2}\n"


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("train_cell", [], "expected the name of one model of params.yaml, got none; it has L0S2, L2H4S2"),
        ("train_cell", ["L2H4S9"], "got L2H4S9; did you mean L2H4S2?"),
        ("extract", ["../x"], "expected the name of one model of params.yaml, got ../x; it has"),
        ("extract", ["L0S2", "L2H4S2"], "expected the name of one model of params.yaml, got L0S2 L2H4S2"),
        ("tokenize", [], "params.yaml: expected the key corpus, got none; run `make params`"),
        ("statistics", [], "params.yaml: expected the key corpus, got none"),
        ("calibrate", [], "params.yaml: expected the key calibrate, got none"),
        ("verify", [], "expected the file data/preregistration.json, found none; `make repro` writes"),
        ("report", [], "params.yaml: expected the key sweep, got none"),
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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "params.yaml: expected the sections that `make params` writes, got no section; run it again"),
        (b"- a", "params.yaml: expected the sections"),
        (b"cells: [1", "params.yaml: expected YAML, got something else"),
        (b"\xff\xfe", "params.yaml: expected YAML, got something else"),
        (b"cells: &a [*a]", "expected the key cells.L2H4S2, got none"),
    ],
)
def test_a_params_file_that_is_none_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        section(params(tmp_path), "cells", "L2H4S2")


@pytest.mark.parametrize("arguments", [["."], [""], ["../project"]])
def test_a_copy_replaces_no_folder_with_other_files(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "mine.py").write_text("unsaved work")
    done = command(tmp_path / "project", "pipelines.scratch", *arguments)
    assert done.returncode == 1
    assert "expected " in done.stderr
    assert (tmp_path / "project" / "src" / "mine.py").read_text() == "unsaved work"


def test_an_earlier_copy_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "project")], check=True)
    (tmp_path / "project" / "a.txt").write_text("a")
    for _ in range(2):
        assert command(tmp_path / "project", "pipelines.scratch", str(tmp_path / "copy")).returncode == 0
    assert (tmp_path / "copy" / "a.txt").read_text() == "a"
    (tmp_path / "copy" / ".git" / "pathsum-copy").unlink()
    assert "expected a new or empty folder" in command(tmp_path / "project", "pipelines.scratch", "../copy").stderr


def test_a_model_is_found_by_its_name() -> None:
    assert model_of(["L2H4S2"], params(ROOT)) == "L2H4S2"


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
