"""DVC in its own process: the same lock file, and stages with the interpreter of this project."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from dvc.utils.serialize import _yaml
from psutil import Process, wait_procs

from pipelines.dvc_process import parse_with_libyaml

TEXTS = [
    "off",
    "",
    "é 文",
    "long " * 40,
    "x: y",
    "a\nb",
    "it's",
    "1e3",
    "0x1",
    "~",
    "- a",
    "2026-01-01",
    " lead",
    "# no",
]
LOCK = {
    "schema": "2.0",
    "stages": OrderedDict(
        train={"cmd": "python -m a", "deps": [{"path": "é", "md5": "1e5", "size": 3, "nfiles": 2}], "outs": []},
        report={"params": {"params.yaml": {"texts": TEXTS, "rates": [1e-05, 0.0003, 1e22, True, None], "none": {}}}},
    ),
}


def _dumped(data: Any) -> str:
    text = io.StringIO()
    _yaml._dump(data, text)
    return text.getvalue()


def test_the_lock_file_has_the_bytes_that_dvc_alone_would_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written = _dumped(LOCK)
    monkeypatch.setattr(_yaml, "parse_yaml_for_update", _yaml.parse_yaml_for_update)  # is put back afterwards
    by_dvc = _yaml.parse_yaml_for_update(written, "dvc.lock")
    parse_with_libyaml()
    fast = _yaml.parse_yaml_for_update(written, "dvc.lock")
    assert type(fast) is not type(by_dvc)
    assert _dumped(fast) == _dumped(by_dvc) == written


def test_stages_run_with_the_interpreter_of_dvc_without_an_activated_environment(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {a: {cmd: \"python -c 'import sys; print(sys.prefix)' > out\"}}\n")
    root = Path(__file__).parents[2]
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(root), "DVC_NO_ANALYTICS": "1"}
    run = [sys.executable, "-m", "pipelines.dvc_process"]
    for command in (["init", "--quiet", "--no-scm"], ["repro", "--quiet"]):
        subprocess.run([*run, *command], cwd=tmp_path, env=bare, check=True, timeout=120)
    assert (tmp_path / "out").read_text().strip() == sys.prefix


def test_the_status_of_files_that_another_process_writes_is_told(tmp_path: Path) -> None:
    """A report beside `make repro` needs it. DVC alone ends with an error."""
    (tmp_path / "dvc.yaml").write_text("stages: {a: {cmd: echo 1 > out, outs: [out]}}\n")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    run = [sys.executable, "-m", "pipelines.dvc_process"]
    for command in (["init", "--quiet", "--no-scm"], ["repro", "--quiet"]):
        subprocess.run([*run, *command], cwd=tmp_path, env=env, check=True, timeout=120)
    (tmp_path / "out").write_text("half")
    writing = {"write": {str(tmp_path / "out"): {"pid": os.getpid(), "cmd": "dvc repro"}}, "read": {}}
    (tmp_path / ".dvc" / "tmp" / "rwlock").write_text(json.dumps(writing))
    told = subprocess.run([*run, "status", "--json"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout) == {"a": [{"changed outs": {"out": "modified"}}]}
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run([sys.executable, "-m", "dvc", "status"], cwd=tmp_path, env=env, check=True, capture_output=True)


def test_the_status_is_that_of_dvc_where_stages_share_what_changed(tmp_path: Path) -> None:
    stages = {
        name: {"cmd": f"echo {name} > {name}", "deps": ["in"], "params": ["x", {"other.yaml": ["y"]}], "outs": [name]}
        for name in "ab"
    }
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": stages | {"c": {"cmd": "cat a b", "deps": ["a", "b"]}}}))
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}

    def dvc(module: str, *command: str) -> str:
        run = [sys.executable, "-m", module, *command]
        return subprocess.run(
            run, cwd=tmp_path, env=env, check=True, timeout=120, capture_output=True, text=True
        ).stdout

    for moment in range(3):
        (tmp_path / "in").write_text(f"{min(moment, 1)}")
        (tmp_path / "params.yaml").write_text(f"x: {moment}")
        (tmp_path / "other.yaml").write_text(f"y: {moment // 2}")
        if not moment:
            dvc("dvc", "init", "--quiet", "--no-scm")
            dvc("dvc", "repro", "--quiet")
        if moment == 2:
            (tmp_path / "a").write_text("else")
        told = json.loads(dvc("pipelines.dvc_process", "status", "--json"))
        assert told == json.loads(dvc("dvc", "status", "--json"))
        assert set(told) == [set(), {"a", "b"}, {"a", "b", "c"}][moment]


def _project(folder: Path) -> dict[str, str]:
    """Begin a DVC project in ``folder`` with a stage that prints, and return an environment without other settings."""
    (folder / "dvc.yaml").write_text("stages: {a: {cmd: echo 1}}")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    env |= {f"DVC_{level}_CONFIG_DIR": str(folder / level) for level in ("GLOBAL", "SYSTEM")}
    subprocess.run([sys.executable, "-m", "dvc", "init", "--quiet", "--no-scm"], cwd=folder, env=env, check=True)
    return env


def _status(folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipelines.dvc_process", "status", "--json"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        ("GLOBAL/config", b"[core", "config file error: Invalid line .*"),
        ("SYSTEM/config", b"[core]\nfoo = 1", "extra keys not allowed @ data\\['core'\\]\\['foo'\\]"),
        ("GLOBAL", b"", "Not a directory"),
        (".dvc/config.local", b"remote = x", "expected a dictionary for dictionary value @ data\\['remote'\\]"),
        (".dvc/config", b"[cache]\ntype = \xff", "'utf-8' codec can't decode byte .*"),
        (".dvcignore", b"\xff", "'utf-8' codec can't decode byte .*"),
    ],
)
def test_a_file_of_dvc_that_it_cannot_read_is_named(tmp_path: Path, path: str, content: bytes, why: str) -> None:
    """DVC would not name it, and for some would print a traceback."""
    env = _project(tmp_path)
    assert _status(tmp_path, env).returncode == 0
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_bytes(content)
    told = _status(tmp_path, env)
    name = path if path.startswith(".") else re.escape(str(tmp_path / path.split("/")[0] / "config"))
    hint = "put it back" if path in (".dvc/config", ".dvcignore") else "correct or remove it"
    said = rf"error: {name}: expected a file of DVC that can be read \({why}\); {hint}\n"
    assert (told.returncode, told.stdout) == (1, "")
    assert re.fullmatch(said, told.stderr)


REMOTE = "['remote \"store\"']\n"


@pytest.mark.parametrize("secret", [".dvc/config.local", "GLOBAL/config"])
def test_a_remote_may_have_its_key_in_another_file(tmp_path: Path, secret: str) -> None:
    """`dvc remote modify --local` writes such files, as does --global."""
    env = _project(tmp_path)
    (tmp_path / secret).parent.mkdir(exist_ok=True)
    (tmp_path / secret).write_text(f"{REMOTE}    keyfile = id\n")
    told = _status(tmp_path, env)
    alone = f"error: .*{secret.split('/')[1]}: .*expected 'url' for dictionary value .*; correct or remove it\n"
    assert told.returncode == 1
    assert re.fullmatch(alone, told.stderr)
    (tmp_path / ".dvc" / "config").write_text(f"[core]\n    no_scm = True\n{REMOTE}    url = ssh://host/store\n")
    told = _status(tmp_path, env)
    assert (told.returncode, told.stderr) == (0, "")


def test_the_file_with_the_wrong_setting_is_named_among_several(tmp_path: Path) -> None:
    env = _project(tmp_path)
    (tmp_path / ".dvc" / "config").write_text(
        f"[core]\n    no_scm = True\n{REMOTE}    url = ssh://host/store\n    port = ten\n"
    )
    (tmp_path / ".dvc" / "config.local").write_text(f"{REMOTE}    keyfile = id\n")
    told = _status(tmp_path, env)
    assert told.returncode == 1
    assert re.fullmatch(r"error: \.dvc/config: .*\['port'\]\); put it back\n", told.stderr)
    (tmp_path / ".dvc" / "config.local").write_text(f"{REMOTE}    port = 22\n")  # overrules it
    assert _status(tmp_path, env).returncode == 0


def test_a_site_cache_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    env = _project(tmp_path) | {"DVC_SITE_CACHE_DIR": str(tmp_path / "dvc.yaml" / "x")}
    told = _status(tmp_path, env)
    assert told.returncode == 1
    said = (
        f"error: DVC_SITE_CACHE_DIR={tmp_path}/dvc.yaml/x: expected a folder that can be made (Not a directory); unset"
    )
    assert told.stderr.startswith(said)


def test_settings_of_dvc_that_contradict_each_other_are_said_to_be_settings(tmp_path: Path) -> None:
    env = _project(tmp_path)
    (tmp_path / ".dvc" / "config.local").write_text("[cache]\nlocal = nope")
    told = _status(tmp_path, env)
    assert told.returncode
    assert told.stderr.endswith("is in .dvc/config, .dvc/config.local or the user's configuration of DVC\n")


def test_a_stage_ends_with_dvc_even_if_a_shell_stays_between_them(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("macOS does not tell a process that another one has ended")
    env = _project(tmp_path) | {"SHELL": str(tmp_path / "shell"), "DVC_STAGE": "a"}
    (tmp_path / "shell").write_text('#!/bin/sh\n/bin/sh "$@"\nexit $?\n')  # a shell that waits for its command
    (tmp_path / "shell").chmod(0o755)
    code = "import sys; sys.argv[0] = '-m'; import pipelines, time; open('begun', 'w'); time.sleep(99)"
    (tmp_path / "stage.py").write_text(code)
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": {"a": {"cmd": f"{sys.executable} stage.py"}}}))
    command = [sys.executable, "-m", "pipelines.dvc_process", "repro"]
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, start_new_session=True)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.02)
    *_, stage = Process(process.pid).children(recursive=True)
    assert stage.cmdline()[-1] == "stage.py"
    process.kill()
    process.wait()
    assert wait_procs([stage], timeout=20)[0] == [stage]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_told_without_a_traceback(tmp_path: Path) -> None:
    env = _project(tmp_path)
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "pipelines.dvc_process", "repro"]
        told = subprocess.run(
            command, cwd=tmp_path, env=env, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120
        )
    assert told.returncode
    assert told.stderr.splitlines()[-1].startswith("error: the disk to which standard output goes is full; make room")
    assert "Traceback" not in told.stderr
