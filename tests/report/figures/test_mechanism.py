"""In the diagrams of one and two layers, on a screen and turned on a phone, every text stays on the canvas, and none
covers another or its box."""

import itertools
from collections.abc import Callable
from typing import Any

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from pathsum.records.results import Results
from pathsum.report.figures import mechanism
from pathsum.report.figures.base import STYLE, Figure
from tests.report import synthetic


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("draw", [mechanism.mechanism_one, mechanism.mechanism_two])
def test_a_diagram_is_readable(
    draw: Callable[[Results], Figure | None], phone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(mechanism, "picture", lambda *arguments: given.extend(arguments))
    draw(synthetic.results())
    *_, wide, paint, narrow = given
    assert narrow[0] < mechanism.NARROW < wide[0]
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=narrow if phone else wide, layout="constrained")
        paint(canvas)
        renderer = FigureCanvasAgg(canvas).get_renderer()
        canvas.draw(renderer)
        texts = [text for text in canvas.axes[0].texts if text.get_text()]
        boxes = [(text.get_bbox_patch() or text).get_window_extent(renderer) for text in texts]
    assert len(boxes) > 8
    for text, box in zip(texts, boxes, strict=True):
        assert canvas.bbox.x0 <= box.x0 <= box.x1 <= canvas.bbox.x1, text
        assert canvas.bbox.y0 <= box.y0 <= box.y1 <= canvas.bbox.y1, text
    for (one, a), (other, b) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        assert not a.overlaps(b), (one, other)
