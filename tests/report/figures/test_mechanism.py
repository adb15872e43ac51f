"""On a phone the diagrams of one and two layers are turned: every text stays on the canvas, and none covers another."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text

from pathsum.records.results import Results
from pathsum.report.figures import mechanism
from pathsum.report.figures.base import Figure
from tests.report import synthetic


@pytest.mark.parametrize("draw", [mechanism.mechanism_one, mechanism.mechanism_two])
def test_a_turned_diagram_is_readable(
    draw: Callable[[Results], Figure | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(mechanism, "picture", lambda *arguments: given.extend(arguments))
    draw(synthetic.results())
    *_, paint, size = given
    assert size[0] < mechanism.NARROW < mechanism.SIZE[0]
    canvas = Canvas(figsize=size, layout="constrained")
    paint(canvas)
    renderer = FigureCanvasAgg(canvas).get_renderer()
    canvas.draw(renderer)
    boxes = {
        t.get_text(): t.get_window_extent(renderer)
        for t in canvas.axes[0].texts
        if isinstance(t, Text) and t.get_text()
    }
    assert len(boxes) > 6
    for text, box in boxes.items():
        assert canvas.bbox.x0 <= box.x0 <= box.x1 <= canvas.bbox.x1, text
        assert canvas.bbox.y0 <= box.y0 <= box.y1 <= canvas.bbox.y1, text
    for (one, a), (other, b) in itertools.combinations(boxes.items(), 2):
        assert not a.overlaps(b), (one, other)
