"""One graph on the smoke profile, made once for every file that reads it, and a copy for each file to change."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from pipelines.paths import ROOT
from tests.pipelines.workspace import sh


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make every stage, one model at a time. All workers share the folder, so no test writes in it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "smoke"
    with FileLock(f"{folder}.lock"):
        if not (folder / "reports" / "index.html").exists():
            sh(ROOT, "env", "JOBS=1", "bash", "pipelines/smoke.sh", str(folder))
    return folder


@pytest.fixture(scope="module")
def workspace(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the graph, with every result up to date."""
    return Path(shutil.copytree(graph, tmp_path_factory.mktemp("workspace") / "smoke", symlinks=True))
