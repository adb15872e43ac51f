"""One graph on the smoke profile, made once for every file that reads it, and a copy for each file to change."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.paths import ROOT
from tests.pipelines.workspace import sh


@pytest.fixture(scope="session")
def graph(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """Make every stage, one model at a time."""
    return made_once("smoke", lambda folder: sh(ROOT, "bash", "pipelines/smoke.sh", str(folder)))


@pytest.fixture(scope="module")
def workspace(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the graph, with every result up to date."""
    return Path(shutil.copytree(graph, tmp_path_factory.mktemp("workspace") / "smoke", symlinks=True))
