"""Figures over training shade the curriculum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.figures import learning
from pathsum.figures.base import Figure
from pathsum.records.results import Results
from pathsum.report.themes.controls import controls
from tests.report import synthetic


@pytest.mark.parametrize("draw", [learning.headline, learning.phase_change, controls])
def test_the_tokens_of_a_curriculum_are_shaded(draw: Callable[[Results], Figure | None]) -> None:
    """Training begins with a curriculum in the two-layer model, and without one in the zero-layer model."""
    plain = synthetic.results(layers=(0, 2), heads=(2,), seeds=(0,))
    cells = {
        name: replace(c, summary=replace(c.summary, curriculum_tokens=2_400_000)) if c.summary.n_layers else c
        for name, c in plain.cells.items()
    }
    captions = []
    for results, patches in ((plain, []), (replace(plain, cells=cells), [(0, 2.4)])):
        ax = Canvas().subplots()
        learning.shade_curricula(ax, results)
        assert [(p.get_x(), p.get_width()) for p in ax.patches if isinstance(p, Rectangle)] == patches
        figure = draw(results)
        assert figure is not None
        captions.append(figure.caption)
    assert "Shaded" not in captions[0]
    shaded = " Shaded: the curriculum of models with 2 layers, that is, training on the most repetitive windows only."
    assert captions[1].endswith(shaded)
