"""The explorers in a browser: pointer, keys and search change the page, and nothing is requested from the network."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from pathsum.report.symbols import visible
from tests.report import synthetic
from tests.report.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")

TOKENS = "#x-tokens button"
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


def strength(page: Browser, token: int, way: str) -> float:
    return float(page.ask(f"document.querySelectorAll('{TOKENS}')[{token}].style.getPropertyValue('--{way}')"))


def test_hovering_and_arrow_keys_show_where_a_token_looks(page: Browser) -> None:
    choose(page, "#x-head", "0")  # attends to the previous token
    page.hover(TOKENS, 5)
    page.until("document.querySelector('#x-said').textContent.includes(' (5) attends to ')")
    assert [strength(page, i, "out") for i in (3, 4, 5)] == [0, 1, 0]
    assert [strength(page, i, "in") for i in (5, 6, 7)] == [0, 1, 0]
    page.ask(f"document.querySelectorAll('{TOKENS}')[5].focus()")
    for key, now in (("ArrowRight", 6), ("ArrowLeft", 5), ("End", 11), ("ArrowRight", 11), ("Home", 0)):
        page.press(key)
        assert page.ask(f"[...document.querySelectorAll('{TOKENS}')].indexOf(document.activeElement)") == now
        assert page.ask(f"[...document.querySelectorAll('{TOKENS}')].filter((b) => b.tabIndex === 0).length") == 1


def test_heads_checkpoints_passages_and_models_can_be_chosen(page: Browser) -> None:
    page.hover(TOKENS, 5)
    choose(page, "#x-head", "0 1")  # the layer's average
    assert strength(page, 4, "out") == pytest.approx((1 + 0.16) / 2, abs=1e-3)
    choose(page, "#x-at", "0")
    assert page.ask("document.querySelector('#x-at-said').textContent") == "0 tokens seen"
    choose(page, "#x-weighted", "1")
    assert page.ask("document.querySelector('#x-at').disabled") is True
    assert page.ask("document.querySelector('#x-at-said').textContent") == "8.0 M tokens seen"
    choose(page, "#x-passage", "2")
    choose(page, "#x-cell", "L0S0")
    page.until("document.querySelector('#x-said').textContent.includes('without layers')")
    assert page.ask("document.querySelector('#x-head').disabled") is True


def test_a_click_and_enter_split_a_prediction_into_parts_that_add_up(page: Browser) -> None:
    page.hover(TOKENS, 4, click=True)
    first = texts(page, "#x-split h4")
    page.press("ArrowRight")
    page.press("Enter")
    assert first != texts(page, "#x-split h4")
    assert len(first) == 2
    for half in (1, 2):
        each = {
            kind: [
                round(1000 * float(x.replace("−", "-")))
                for x in texts(page, f"#x-split .half:nth-child({half}) .{kind}")
            ]
            for kind in ("part", "total", "logit")
        }
        assert len(each["part"]) == 1 + 4 + 4  # direct, the heads, the virtual heads
        assert [sum(each["part"])] == each["total"] == each["logit"]


def test_a_search_finds_tokens_and_shows_their_circuits(page: Browser) -> None:
    page.ask("document.querySelector('#x-search').focus()")
    page.send("Input.insertText", text="<img")
    assert texts(page, "#x-matches button") == [visible("<img src=http://x.example/a.png>")]
    page.press("Enter")
    assert page.ask("document.querySelector('#x-circuit h4').textContent") == f"Token {visible(synthetic.HOSTILE[7])}"
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
    page.send("Input.insertText", text="EDGE  loss")
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


def test_hostile_tokens_are_shown_as_they_are(page: Browser) -> None:
    assert texts(page, TOKENS) == ["<|bos|>", *(visible(t) for t in synthetic.HOSTILE[:-1])]
    assert page.ask("document.querySelectorAll('.explorer img, .explorer script').length") == 0
    assert page.ask("document.documentElement.scrollWidth <= innerWidth") is True


def test_the_explorers_are_not_printed(page: Browser) -> None:
    page.send("Emulation.setEmulatedMedia", media="print")
    assert page.ask("getComputedStyle(document.querySelector('.explorer')).display") == "none"
