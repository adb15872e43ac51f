"""A copy of conf/ that tests can change, and the result of the check stage on it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pipelines.paths import ROOT
from tests.commands import command


def copy(folder: Path) -> Path:
    """Copy the parts of the repository that composition needs."""
    shutil.copytree(ROOT / "conf", folder / "conf")
    shutil.copy(ROOT / "params.yaml", folder)
    return folder


def check(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the check stage in ``folder``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DVC_EXP_NAME", raising=False)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.setattr("pipelines.compose.ROOT", folder)
        return command(folder, "pipelines.check")
