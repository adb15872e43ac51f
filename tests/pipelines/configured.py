"""A copy of conf/ that tests can change, and the result of the check stage on it."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipelines.paths import ROOT


def copy(folder: Path) -> Path:
    """Copy the parts of the repository that composition needs."""
    for name in ("conf", "pipelines"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "params.yaml", folder)
    return folder


def check_as_command(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the check stage as DVC does."""
    path = os.pathsep.join([str(folder), str(ROOT / "src")])
    return subprocess.run(
        [sys.executable, "-m", "pipelines.check"],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**{k: v for k, v in os.environ.items() if k != "DVC_EXP_NAME"}, "PYTHONPATH": path},
    )  # fmt: skip


def check(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the check stage in this process, which has already imported torch."""
    said, code, threads = io.StringIO(), 0, torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(said):
        patch.delenv("DVC_EXP_NAME", raising=False)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        patch.setattr("pipelines.compose.ROOT", folder)
        patch.setattr("sys.argv", ["check"])
        try:
            runpy.run_path(str(folder / "pipelines" / "check.py"), run_name="__main__")
        except SystemExit as left:
            code = int(left.code or 0)
        finally:
            torch.set_num_threads(threads)
    return subprocess.CompletedProcess([], code, "", said.getvalue())
