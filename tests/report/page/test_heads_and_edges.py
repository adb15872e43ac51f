"""“Heads and what they read”: its data are the records, and the page shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathsum.claims.formatting import head_label, spelled
from pathsum.records.ablations import AblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results
from pathsum.report.page.heads_and_edges import METHOD, payload
from tests.report.page.browser import CHROMIUM, Browser


def deepest(results: Results) -> Cell:
    return next(c for c in results.with_layers(2) if c.rows(CompositionRow))


def cut(cell: Cell, e: CompositionRow) -> AblationRow | None:
    """Return the record of cutting an edge, found by every field that names it."""
    for r in cell.rows(AblationRow):
        ends = (r.target, r.kind, r.early_layer, r.early_head, r.layer, r.head, r.method, r.patterns)
        if ends == ("edge", e.kind, e.early_layer, e.early_head, e.late_layer, e.late_head, METHOD, "recomputed"):
            return r
    return None


def test_every_head_and_edge_has_the_numbers_of_its_records(results: Results) -> None:
    cell = deepest(results)
    data = payload(cell)
    assert [h["name"] for h in data["heads"]] == [head_label(h.layer, h.head) for h in cell.rows(HeadRow)]
    edges = cell.rows(CompositionRow)
    assert len(data["edges"]) == len(edges)
    assert any(cut(cell, e) for e in edges)
    for shown, e in zip(data["edges"], edges, strict=True):
        assert (shown["kind"], shown["early"]) == (e.kind, head_label(e.early_layer, e.early_head))
        assert shown["composition"] == pytest.approx(e.varying, abs=5e-4)
        record = cut(cell, e)
        assert (shown["cost"] is None) == (record is None)
        if record:
            second = [record.second_copy_nats, record.second_copy_low, record.second_copy_high]
            assert shown["cost"]["second"] == pytest.approx(second, abs=5e-4)
            assert shown["cost"]["text"][0] == pytest.approx(record.loss_nats, abs=5e-5)


def test_a_model_of_one_layer_has_heads_and_no_edges(results: Results) -> None:
    data = payload(results.with_layers(1)[0])
    assert data["heads"]
    assert data["edges"] == []


@pytest.fixture(scope="module")
def page(full: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("no chromium on this machine")
    with Browser(tmp_path_factory.mktemp("heads"), 1200) as browser:
        browser.open_report(full)
        browser.until("document.querySelector('#h-card h3')")
        yield browser
        assert browser.complaints == []


def card(page: Browser) -> str:
    return str(page.ask("document.querySelector('#h-card').innerText"))


def test_a_chosen_head_shows_what_its_inputs_read(page: Browser, results: Results) -> None:
    name = page.ask("document.querySelector('#h-model').value")
    data = payload(results.cells[name])
    for head in data["heads"]:
        page.ask(f"document.querySelector('#h-heads button[data-head={json.dumps(head['name'])}]').click()")
        shown = card(page)
        assert shown.startswith(f"Head {spelled(head['name'])}")
        for edge in data["edges"]:
            if edge["late"] == head["name"] and edge["kind"] == "K" and edge["cost"]:
                value = f"{edge['cost']['second'][0]:+.2f}".replace("-", "−")
                assert value in shown, (edge, shown)


def test_an_edge_opens_what_cutting_it_costs(page: Browser, results: Results) -> None:
    name = page.ask("document.querySelector('#h-model').value")
    edges = [e for e in payload(results.cells[name])["edges"] if e["kind"] == "K"]
    assert page.ask("document.querySelectorAll('#h-edges path').length") == len(edges)
    page.ask("document.querySelector('#h-edges path').dispatchEvent(new MouseEvent('click'))")
    assert page.ask("document.querySelectorAll('#h-card tr.chosen').length") == 1


def test_queries_and_values_have_edges_of_their_own(page: Browser) -> None:
    for kind, words in (("Q", "queries"), ("V", "values")):
        page.ask(
            f"(() => {{ const c = document.querySelector('#h-kind'); c.value = '{kind}'; "
            "c.dispatchEvent(new Event('change')); })()"
        )
        assert f"What the {words} of" in card(page)
