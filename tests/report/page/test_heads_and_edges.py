"""“Heads and what they read”: its data are the records, and the page shows them."""

from __future__ import annotations

import pytest

from pathsum.claims.formatting import head_label, spelled
from pathsum.records.ablations import AblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results
from pathsum.report.page.heads_and_edges import METHOD, payload
from tests.report.page.browser import Browser


def deepest(results: Results) -> Cell:
    return next(c for c in results.with_layers(2) if c.rows(CompositionRow))


def test_every_head_and_edge_has_the_numbers_of_its_records(results: Results) -> None:
    cell = deepest(results)
    data = payload(cell)
    assert [h["name"] for h in data["heads"]] == [head_label(h.layer, h.head) for h in cell.rows(HeadRow)]
    edges = cell.rows(CompositionRow)
    of_ends = ("kind", "early_layer", "early_head", "layer", "head")
    cuts = {
        tuple(getattr(r, name) for name in of_ends): r
        for r in cell.rows(AblationRow)
        if (r.target, r.method, r.patterns) == ("edge", METHOD, "recomputed")
    }
    for shown, e in zip(data["edges"], edges, strict=True):
        assert (shown["kind"], shown["early"]) == (e.kind, head_label(e.early_layer, e.early_head))
        assert shown["composition"] == pytest.approx(e.varying, abs=5e-4)
        record = cuts.get((e.kind, e.early_layer, e.early_head, e.late_layer, e.late_head))
        assert (shown["cost"] is None) == (record is None)
        if record:
            second = [record.second_copy_nats, record.second_copy_low, record.second_copy_high]
            assert shown["cost"]["second"] == pytest.approx(second, abs=5e-4)
            assert shown["cost"]["text"][0] == pytest.approx(record.loss_nats, abs=5e-5)
    assert any(shown["cost"] for shown in data["edges"])


def test_a_model_of_one_layer_has_heads_and_no_edges(results: Results) -> None:
    data = payload(results.with_layers(1)[0])
    assert data["heads"]
    assert data["edges"] == []


def card(opened: Browser) -> str:
    return str(opened.ask("document.querySelector('#h-card').innerText"))


def test_a_chosen_head_shows_what_its_inputs_read(opened: Browser, results: Results) -> None:
    name = opened.ask("document.querySelector('#h-model').value")
    data = payload(results.cells[name])
    for head in data["heads"]:
        opened.click(f"#h-heads button[data-head={head['name']}]")
        shown = card(opened)
        assert shown.startswith(f"Head {spelled(head['name'])}")
        for edge in data["edges"]:
            if edge["late"] == head["name"] and edge["kind"] == "K" and edge["cost"]:
                value = f"{edge['cost']['second'][0]:+.2f}".replace("-", "−")
                assert value in shown, (edge, shown)


def test_an_edge_opens_what_cutting_it_costs(opened: Browser, results: Results) -> None:
    name = opened.ask("document.querySelector('#h-model').value")
    edges = [e for e in payload(results.cells[name])["edges"] if e["kind"] == "K"]
    assert opened.ask("document.querySelectorAll('#h-edges path').length") == len(edges)
    opened.ask("document.querySelector('#h-edges path').dispatchEvent(new MouseEvent('click'))")
    assert opened.ask("document.querySelectorAll('#h-card tr.chosen').length") == 1


def test_queries_and_values_have_edges_of_their_own(opened: Browser) -> None:
    for kind, words in (("Q", "queries"), ("V", "values")):
        opened.choose("#h-kind", kind)
        assert f"What the {words} of" in card(opened)
