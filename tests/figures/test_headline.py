"""The caption of the first figure says how the dots differ from the ends of the lines."""

from __future__ import annotations

from dataclasses import replace

from pathsum.figures.learning import headline
from pathsum.records.results import Cell
from tests.report import synthetic


def raised(cell: Cell, nats: float) -> Cell:
    """Return ``cell`` with a final loss drop of ``nats`` above that of its last evaluation."""
    return replace(
        cell, summary=replace(cell.summary, in_context_loss_drop_nats=nats + cell.log[-1].in_context_loss_drop_nats)
    )


def test_dots_above_and_below_the_lines_are_told_apart() -> None:
    found = synthetic.results(heads=(2,), seeds=(0,))
    gaps = {0: 0.0, 1: -0.125, 2: 0.25}
    figure = headline(replace(found, cells={n: raised(c, gaps[c.summary.n_layers]) for n, c in found.cells.items()}))
    assert figure is not None
    assert "from the lines' ends by 0.00 nats (0 layers), −0.12 nats (1 layer), 0.25 nats (2 layers)" in figure.caption
