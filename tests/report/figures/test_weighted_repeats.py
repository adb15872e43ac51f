"""Figures over training shade the tokens seen while repeats had a larger weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.records.results import Results
from pathsum.report.figures import learning
from pathsum.report.figures.base import Figure
from pathsum.report.themes.controls import controls
from tests.report import synthetic


@pytest.mark.parametrize("draw", [learning.headline, learning.phase_change, controls])
def test_the_tokens_of_weighted_repeats_are_shaded(draw: Callable[[Results], Figure | None]) -> None:
    """Repeats have a larger weight in the two-layer model, and none in the zero-layer model."""
    plain = synthetic.results(layers=(0, 2), heads=(2,), seeds=(0,))
    cells = {
        name: replace(c, summary=replace(c.summary, repeat_weight=3.0, repeat_tokens=2_400_000))
        if c.summary.n_layers
        else c
        for name, c in plain.cells.items()
    }
    captions = []
    for results, patches in ((plain, []), (replace(plain, cells=cells), [(0, 2.4)])):
        ax = Canvas().subplots()
        learning.shade_led(ax, results)
        assert [(p.get_x(), p.get_width()) for p in ax.patches if isinstance(p, Rectangle)] == patches
        figure = draw(results)
        assert figure is not None
        captions.append(figure.caption)
    assert "Shaded" not in captions[0]
    shaded = " Shaded: repeated pairs have a larger weight in the training loss of models with 2 layers."
    assert captions[1].endswith(shaded)
