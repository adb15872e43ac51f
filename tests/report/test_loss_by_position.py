"""What the report says about the positions of the in-context loss drop is what the loss drop reads."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from pathsum.probes.in_context import LONG_CONTEXT, in_context_loss_drop
from pathsum.records.results import Results
from pathsum.report.figures.positions import loss_drop_ends
from pathsum.report.themes import phase_change, references
from tests.report.conftest import made_up_results


def _reads(n: int) -> list[int]:
    """Return the tokens whose loss changes the in-context loss drop of windows of ``n`` predictions."""
    losses = torch.eye(n, dtype=torch.float64)
    return [position + 1 for position in range(n) if in_context_loss_drop(losses[position])]


@pytest.mark.parametrize("n", [64, 256, LONG_CONTEXT - 1, LONG_CONTEXT, 2048])
def test_the_gray_bands_are_the_positions_of_the_loss_drop(n: int) -> None:
    bands = loss_drop_ends(n)
    inside = [p for p in range(1, n + 1) if any(low <= p <= high for low, high in bands)]
    read = _reads(n)
    assert len(set(read) ^ set(inside)) <= 2 if n < LONG_CONTEXT else read == inside  # fractions of n are rounded


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
