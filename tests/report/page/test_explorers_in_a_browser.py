"""The circuit explorer in a browser: search changes the page, and nothing is requested from the network."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from pathsum.report.figures.symbols import visible
from tests.report import synthetic
from tests.report.page.browser import CHROMIUM, WITH_HANDLERS, Browser

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")

SHOWN = "[...document.querySelectorAll('{}')].map((e) => e.textContent)"


@pytest.fixture(params=[1200, 390])
def page(full: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Browser]:
    with Browser(tmp_path, request.param) as browser:
        browser.open_report(full)
        yield browser
        assert browser.complaints == []
        assert [r for r in browser.requests if not r.startswith("data:")] == [(full / "index.html").as_uri()]


def texts(page: Browser, selector: str) -> list[str]:
    found: list[str] = page.ask(SHOWN.format(selector))
    return found


def choose(page: Browser, control: str, value: str) -> None:
    page.ask(
        f"(() => {{ const c = document.querySelector({json.dumps(control)}); c.value = {json.dumps(value)}; "
        "for (const kind of ['input', 'change']) c.dispatchEvent(new Event(kind, {bubbles: true})); })()"
    )


def test_a_search_finds_tokens_and_shows_their_circuits(page: Browser) -> None:
    page.ask("document.querySelector('#x-search').focus()")
    page.send("Input.insertText", text="<img")
    assert texts(page, "#x-matches button") == [visible("<img src=http://x.example/a.png>")]
    assert page.ask("document.querySelector('#x-circuit h4').textContent") == f"Token {visible(synthetic.HOSTILE[7])}"
    assert page.ask("document.querySelector('#x-matches button').ariaPressed") == "true"
    assert len(texts(page, "#x-circuit tr")) == 2 + 1 + 4  # what comes next, and a row for each head
    choose(page, "#x-tables", "L0S0")
    page.until("document.querySelectorAll('#x-circuit tr').length === 2")
    assert page.ask("document.querySelector('#x-circuit h4').textContent") == f"Token {visible(synthetic.HOSTILE[7])}"


def test_a_table_sorts_filters_and_saves_what_it_shows(page: Browser, tmp_path: Path) -> None:
    page.ask("location.hash = 'where-each-number-comes-from'")  # opens the fold of this section
    page.until("document.querySelector('#where-each-number-comes-from details').open")
    tools = "document.querySelector('#where-each-number-comes-from .tools')"
    records = f"{tools}.nextElementSibling.querySelector('table')"
    rows = f"[...{records}.tBodies[0].rows].filter((r) => !r.hidden)"
    shown = f"{rows}.map((r) => r.cells[0].textContent)"
    everything, texts_of = page.ask(shown), page.ask(f"{rows}.map((r) => r.textContent.toLowerCase())")
    page.ask(f"{tools}.querySelector('input').focus()")
    page.send("Input.insertText", text="EDGE, loss")
    found = page.ask(shown)
    assert found == [c for c, t in zip(everything, texts_of, strict=True) if "edge" in t and "loss" in t] != []
    assert page.ask(f"{tools}.querySelector('output').textContent") == f"{len(found)} of {len(everything)} rows"
    for sorts in ("descending", "ascending"):
        page.ask(f"{records}.tHead.rows[0].cells[0].querySelector('button').click()")
        assert page.ask(f"{records}.tHead.rows[0].cells[0].ariaSort") == sorts
    assert page.ask(shown) == sorted(found)
    page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.ask(f"{tools}.querySelector('button').click()")
    saved, end = tmp_path / "table.csv", time.monotonic() + 20
    while not (saved.is_file() and saved.stat().st_size) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(pd.read_csv(saved)["record"]) == sorted(found)


def test_hostile_tokens_add_no_markup_and_fit(page: Browser) -> None:
    assert page.ask("document.querySelectorAll('.explorer img, .explorer script').length") == 0
    assert page.ask(WITH_HANDLERS) == 0
    assert page.ask("document.documentElement.scrollWidth <= innerWidth") is True


def test_the_explorer_is_not_printed(page: Browser) -> None:
    page.send("Emulation.setEmulatedMedia", media="print")
    assert page.ask("getComputedStyle(document.querySelector('#x-explorers')).display") == "none"
