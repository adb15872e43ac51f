"""A whole report, written once for every file that reads one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathsum.claims.registry import judge_all
from pathsum.report.build import write_report
from tests.report import synthetic


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report on models of every depth, of which one is missing."""
    folder = tmp_path_factory.mktemp("reports")
    results = synthetic.results(heads=(2,), seeds=(0,), missing=("L2H9S9",))
    write_report(results, judge_all(results), folder)
    return folder
