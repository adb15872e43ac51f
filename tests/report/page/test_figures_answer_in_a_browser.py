"""Figures, terms and the contents answer to the pointer and to where the reader is."""

import json
from collections.abc import Iterator

import pytest

from tests.report.page.browser import Browser

FIGURE = "figure:has(.points):not(:has(source)) img"  # not stacked on a phone


@pytest.fixture
def page(opened: Browser) -> Iterator[Browser]:
    opened.ask("location.hash = ''")
    yield opened
    opened.send("Input.dispatchMouseEvent", type="mouseMoved", x=0, y=0)


def points(page: Browser) -> list[tuple[str, str, str, list[tuple[float, float, str]]]]:
    """The models of the first figure with points, and their points."""
    return list(
        page.ask("JSON.parse(document.querySelector('figure:not(:has(source)) script.points').textContent).points")
    )


def move(page: Browser, x: float, y: float, *, click: bool = False) -> None:
    """Move the pointer to a place of the figure, in shares of its size."""
    page.ask(f"document.querySelector({json.dumps(FIGURE)}).scrollIntoView({{block: 'center'}})")
    left, top, width, height = page.ask(
        f"(({{x, y, width, height}}) => [x, y, width, height])"
        f"(document.querySelector({json.dumps(FIGURE)}).getBoundingClientRect())"
    )
    at = {"x": left + x * width, "y": top + y * height}
    page.send("Input.dispatchMouseEvent", type="mouseMoved", **at)
    for kind in ("mousePressed", "mouseReleased") if click else ():
        page.send("Input.dispatchMouseEvent", type=kind, **at, button="left", clickCount=1)


def test_a_point_says_its_model_and_value_and_leads_to_the_heads_of_the_model(page: Browser) -> None:
    shown = set(
        page.ask("[...document.querySelectorAll('script[data-widget=heads_and_edges]')].map((s) => s.dataset.model)")
    )
    *_, at = next(found for found in points(page) if found[0] in shown)
    x, y, _ = at[-1]
    move(page, x, y)
    page.until("!document.querySelector('.tip').hidden")
    here = [f"{n}: {v} ({words})" for _, n, words, some in points(page) for px, py, v in some if (px, py) == (x, y)]
    assert page.text(".tip") in here
    move(page, x, y, click=True)
    page.until("location.hash.startsWith('#heads?model=')")
    assert page.ask("document.querySelector('#h-model').value") in shown
    move(page, 0.5, 0.001)
    page.until("document.querySelector('.tip').hidden")


def test_points_lie_where_the_figure_has_them(page: Browser) -> None:
    """Values and places of the points of one panel are on a line, the axis: to the right and upwards."""
    for _, _, label, at in points(page):
        assert label
        assert all(0 < x < 1 and 0 < y < 1 for x, y, _ in at)
    curves = [at for *_, at in points(page) if " at " in at[0][2]]
    curve = max(curves, key=lambda at: max(y for _, y, _ in at) - min(y for _, y, _ in at))
    values = [[float(part.replace("−", "-")) for part in said.split(" at ")] for *_, said in curve]
    across = sorted((x, value[1]) for (x, _, _), value in zip(curve, values, strict=True))
    upwards = sorted((1 - y, value[0]) for (_, y, _), value in zip(curve, values, strict=True))
    for pairs in (across, upwards):
        (x0, v0), (x1, v1) = pairs[0], pairs[-1]
        assert v1 > v0
        line = [v0 + (x - x0) * (v1 - v0) / (x1 - x0) for x, _ in pairs]
        assert line == pytest.approx([v for _, v in pairs], abs=0.011 + 2e-3 * abs(v1 - v0))


def test_the_first_use_of_a_term_in_a_section_leads_to_its_definition(page: Browser) -> None:
    terms = page.ask(
        "[...document.querySelectorAll('main p > a.term')].map((a) => [a.closest('section').id, a.hash, a.title])"
    )
    assert terms
    assert len({(section, term) for section, term, _ in terms}) == len(terms)
    for _, term, meaning in terms:
        cell = f"document.getElementById({json.dumps(term[1:])})"
        assert page.ask(f"{cell}.nextElementSibling.textContent.trim()") == meaning


def test_the_contents_mark_the_section_that_is_read(page: Browser) -> None:
    for section in ("the-lab", "why-believe-it"):
        page.ask(f"document.getElementById('{section}').scrollIntoView()")
        page.until(f"document.querySelector('nav [aria-current]')?.hash === '#{section}'")
