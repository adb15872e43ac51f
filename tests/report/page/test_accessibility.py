"""The page passes an accessibility checker, and can be used with the keyboard alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.page.browser import CHROMIUM, Browser

axe = pytest.importorskip("axe_core_python", reason="pip install axe-core-python")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")

AXE = Path(axe.__file__).with_name("axe.min.js")
BROKEN = """axe.run(document, {resultTypes: ["violations"]}).then((found) => JSON.stringify(
    found.violations.map((v) => [v.id, v.help, v.nodes.slice(0, 5).map((n) => n.html.slice(0, 200))])))"""


@pytest.fixture(params=[1440, 390])
def page(full: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Browser]:
    with Browser(tmp_path, request.param) as browser:
        browser.open_report(full)
        yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_rule_of_the_checker_is_broken(page: Browser, scheme: str) -> None:
    page.emulate("screen", scheme)
    page.ask("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    page.hover("#w-tokens button", 4)
    page.send("Runtime.evaluate", expression=AXE.read_text(encoding="utf-8"))
    assert json.loads(page.ask(BROKEN)) == []


def test_tab_goes_through_the_page_in_its_order_and_the_focus_is_seen(page: Browser) -> None:
    page.ask("window.passed = []")
    for _ in range(60):
        page.press("Tab")
        page.ask("passed.push(document.activeElement)")
    following = (
        "passed.slice(1).every((e, i) => passed[i].compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)"
    )
    assert page.ask(following) is True
    assert page.ask("passed[0].className") == "skip"
    assert page.ask("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert page.ask("passed.filter((e) => e.matches('header a, header button, header input')).length") > 10


def test_the_six_verdicts_stand_in_even_rows_at_every_width(full: Path, tmp_path: Path) -> None:
    """Three a row where they fit, else two or one."""
    tops = "[...document.querySelectorAll('.verdicts li')].map((e) => Math.round(e.getBoundingClientRect().top))"
    rows = {}
    with Browser(tmp_path) as browser:
        browser.open_report(full)
        for width in (390, 700, 1024, 1281, 1440, 1920):
            browser.send(
                "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
            )
            found = browser.ask(tops)
            rows[width] = [found.count(top) for top in sorted(set(found))]
    assert rows == {390: [1] * 6, 700: [2] * 3, 1024: [3] * 2, 1281: [3] * 2, 1440: [3] * 2, 1920: [3] * 2}
