"""The report tells two in-context loss drops apart only where they differ."""

from __future__ import annotations

import dataclasses

import pytest

from pathsum.probes.in_context import LONG_CONTEXT
from pathsum.records.results import Results
from pathsum.report.themes import phase_change, references
from tests.report.conftest import made_up_results


def _with_windows(n_ctx: int) -> Results:
    results = made_up_results()
    cells = {
        name: dataclasses.replace(cell, summary=dataclasses.replace(cell.summary, n_ctx=n_ctx))
        for name, cell in results.cells.items()
    }
    return dataclasses.replace(results, cells=cells)


@pytest.mark.parametrize(("n_ctx", "two"), [(LONG_CONTEXT - 1, True), (LONG_CONTEXT, False)])
def test_two_loss_drops_are_told_apart_only_where_they_differ(n_ctx: int, two: bool) -> None:
    results = _with_windows(n_ctx)
    assert ("8 to 12 %" in repr(phase_change.section(results, {}))) == two
    assert ("8 to 12 %" in repr(references.section(results, {}))) == two
