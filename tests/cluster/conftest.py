"""A sweep that each test runs on another engine, and the same sweep by one process to compare with.

These tests start services on this machine and kill parts of them. They take minutes, so they run only on request:
`make cluster`.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from pipelines.paths import ROOT
from tests.cluster.sweep import SWEEP
from tests.pipelines.workspace import edit, sh

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PATHSUM_CLUSTER" not in os.environ:
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(
                    pytest.mark.skip(reason="starts services and takes minutes; run it with `make cluster`")
                )


@pytest.fixture(scope="session")
def tokenized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with the smoke profile and its tokens."""
    folder = tmp_path_factory.mktemp("tokenized")
    sh(ROOT, sys.executable, "-m", "pipelines.scratch", str(folder))
    edit(folder / "conf" / "config.yaml", "- profile: laptop", "- profile: smoke")
    for stage in ("compose", "check", "tokenize"):
        sh(folder, sys.executable, "-m", f"pipelines.{stage}")
    return folder


@pytest.fixture(scope="session")
def reference(tokenized: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sweep of one process, without interruption."""
    folder = Path(shutil.copytree(tokenized, tmp_path_factory.mktemp("reference") / "project"))
    sh(folder, sys.executable, "-m", "pipelines.train", "--multirun", *SWEEP)
    return folder


@pytest.fixture
def project(tokenized: Path, tmp_path: Path) -> Path:
    """Return a project in which nothing is trained yet."""
    return Path(shutil.copytree(tokenized, tmp_path / "project"))
