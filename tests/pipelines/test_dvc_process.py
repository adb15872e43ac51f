"""DVC in its own process: the same lock file, and stages with the interpreter of this project."""

from __future__ import annotations

import io
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from dvc.utils.serialize import _yaml

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
