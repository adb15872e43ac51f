"""The circuit explorer, “Heads and what they read” and the tables in a browser."""

import json
import time
from pathlib import Path

import pandas as pd

from pathsum.claims.formatting import spelled
from pathsum.records.heads import HeadRow
from pathsum.records.results import Results
from pathsum.report.figures.symbols import visible
from pathsum.report.page.heads_and_edges import payload
from tests.report import synthetic
from tests.report.page.browser import WITH_HANDLERS, Browser


def test_a_search_finds_tokens_and_shows_their_circuits(opened: Browser) -> None:
    hostile = visible("<img src=http://x.example/a.png>")
    opened.choose("#x-search", "<img")
    assert opened.texts("#x-matches button") == [hostile]
    assert opened.text("#x-circuit h4") == f"Token {hostile}"
    assert opened.ask("document.querySelector('#x-matches button').ariaPressed") == "true"
    assert len(opened.texts("#x-circuit tr")) == 2 + 1 + 4  # what comes next, and a row for each head
    opened.choose("#x-model", "L0S0")
    opened.until("document.querySelectorAll('#x-circuit tr').length === 2")
    assert opened.text("#x-circuit h4") == f"Token {hostile}"


def test_a_chosen_head_shows_what_its_inputs_read_and_an_edge_what_cutting_it_costs(
    opened: Browser, results: Results
) -> None:
    data = payload(results.cells[opened.ask("document.querySelector('#h-model').value")])
    card = "document.querySelector('#h-card').innerText"
    for head in data["heads"]:
        opened.click(f"#h-heads button[data-head={head['name']}]")
        shown = opened.ask(card)
        assert shown.startswith(f"Head {spelled(head['name'])}")
        for edge in data["edges"]:
            if edge["late"] == head["name"] and edge["kind"] == "K" and edge["cost"]:
                value = f"{edge['cost']['second'][0]:+.2f}".replace("-", "−")
                assert value in shown, (edge, shown)
    drawn = opened.ask("document.querySelectorAll('#h-edges path').length")
    assert drawn == sum(edge["kind"] == "K" for edge in data["edges"])
    opened.ask("document.querySelector('#h-edges path').dispatchEvent(new MouseEvent('click'))")
    assert opened.ask("document.querySelectorAll('#h-card tr.chosen').length") == 1
    for kind, words in (("Q", "queries"), ("V", "values")):
        opened.choose("#h-kind", kind)
        assert f"What the {words} of" in opened.ask(card)


def test_a_head_has_an_address(opened: Browser, results: Results) -> None:
    for name, cell in [(n, c) for n, c in results.cells.items() if c.rows(HeadRow)][:2]:
        head = payload(cell)["heads"][-1]
        opened.ask(f"location.hash = '#heads?model={name}&head={head['name']}'")
        opened.until(f"document.querySelector('#h-card h3').textContent.startsWith('Head {spelled(head['name'])}')")
        assert opened.ask("document.querySelector('#h-model').value") == name
        card = opened.ask("document.querySelector('#h-card').innerText")
        assert all(f"{distance} back" in card for distance, _ in head["distances"])
        assert opened.ask("document.querySelector('#h-card a').hash") == opened.ask("location.hash")
        assert len(json.dumps(head)) < 8000


def test_a_table_sorts_filters_and_saves_what_it_shows(opened: Browser, tmp_path: Path) -> None:
    opened.ask("location.hash = 'where-each-number-comes-from'")  # opens the fold of this section
    opened.until("document.querySelector('#where-each-number-comes-from details').open")
    tools = "document.querySelector('#where-each-number-comes-from .tools')"
    records = f"{tools}.nextElementSibling.querySelector('table')"
    rows = f"[...{records}.tBodies[0].rows].filter((r) => !r.hidden)"
    shown = f"{rows}.map((r) => r.cells[0].textContent)"
    everything, texts_of = opened.ask(shown), opened.ask(f"{rows}.map((r) => r.textContent.toLowerCase())")
    opened.ask(f"{tools}.querySelector('input').focus()")
    opened.send("Input.insertText", text="EDGE, loss")
    found = opened.ask(shown)
    assert found == [c for c, t in zip(everything, texts_of, strict=True) if "edge" in t and "loss" in t] != []
    assert opened.ask(f"{tools}.querySelector('output').textContent") == f"{len(found)} of {len(everything)} rows"
    for sorts in ("descending", "ascending"):
        opened.ask(f"{records}.tHead.rows[0].cells[0].querySelector('button').click()")
        assert opened.ask(f"{records}.tHead.rows[0].cells[0].ariaSort") == sorts
    assert opened.ask(shown) == sorted(found)
    opened.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    opened.ask(f"{tools}.querySelector('button').click()")
    saved, end = tmp_path / "table.csv", time.monotonic() + 20
    while not (saved.is_file() and saved.stat().st_size) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(pd.read_csv(saved)["record"]) == sorted(found)


def test_hostile_tokens_add_no_markup_and_nothing_is_wider_than_the_page(opened: Browser) -> None:
    shown = opened.texts("#w-tokens button")
    assert shown == ["<|bos|>", *map(visible, synthetic.HOSTILE)]
    assert opened.ask("document.querySelectorAll('.widget :is(img, script)').length") == 0
    assert opened.ask(WITH_HANDLERS) == 0
    assert opened.ask("document.documentElement.scrollWidth <= innerWidth") is True
