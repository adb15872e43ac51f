"""The page passes an accessibility checker, and can be used with the keyboard alone."""

import json
from pathlib import Path

import pytest

from tests.report.page.browser import CHROMIUM, reading

axe = pytest.importorskip("axe_core_python", reason="pip install axe-core-python")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")

AXE = Path(axe.__file__).with_name("axe.min.js")
BROKEN = """axe.run(document, {resultTypes: ["violations"]}).then((found) => JSON.stringify(
    found.violations.map((v) => [v.id, v.help, v.nodes.slice(0, 5).map((n) => n.html.slice(0, 200))])))"""


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_no_rule_of_the_checker_is_broken(full: Path, tmp_path: Path, width: int, scheme: str) -> None:
    with reading(full, tmp_path, width) as page:
        page.emulate("screen", scheme)
        page.ask("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        page.hover("#w-tokens button", 4)
        page.send("Runtime.evaluate", expression=AXE.read_text(encoding="utf-8"))
        assert json.loads(page.ask(BROKEN)) == []


def test_tab_goes_through_the_page_in_its_order(full: Path, tmp_path: Path) -> None:
    with reading(full, tmp_path) as page:
        page.ask("window.passed = []")
        for _ in range(40):
            page.press("Tab")
            page.ask("passed.push(document.activeElement)")
        order = "passed[i].compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING"
        assert page.ask(f"passed.slice(1).every((e, i) => {order})") is True
        assert page.ask("passed[0].className") == "skip"
        assert page.ask("getComputedStyle(document.activeElement).outlineStyle") != "none"
        assert page.ask("passed.filter((e) => e.matches('header a, header button, header input')).length") > 10
