"""The report tells two in-context loss drops apart only where they differ."""

from __future__ import annotations

import dataclasses

import pytest

from pathsum.behavior.in_context import LONG_CONTEXT
from pathsum.records.results import Results
from pathsum.report.chapters import setup_chapter
from pathsum.report.story import UNFROZEN
from pathsum.report.themes import phase_change
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


SHORT = "loss at 8 to 12 % of the window minus loss in its last tenth"
LONG = "loss near the 50th token minus loss near the 500th"


@pytest.mark.parametrize(
    ("n_ctx", "defined"),
    [
        ((LONG_CONTEXT - 1,) * 2, SHORT),
        ((LONG_CONTEXT,) * 2, LONG),
        ((LONG_CONTEXT - 1, LONG_CONTEXT), f"{SHORT} or, from n_ctx = 511 on, {LONG}"),
    ],
)
def test_the_terms_define_the_loss_drop_of_the_windows_at_hand(n_ctx: tuple[int, int], defined: str) -> None:
    short, long = map(_with_windows, n_ctx)
    cells = {f"{name}-{i}": cell for i, results in enumerate((short, long)) for name, cell in results.cells.items()}
    assert f"'{defined}, nats per token'" in repr(setup_chapter(dataclasses.replace(short, cells=cells), UNFROZEN))
