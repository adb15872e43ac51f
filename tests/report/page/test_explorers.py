"""The data of the circuit explorer is packed and read back. Tokens that look like markup are shown as text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pathsum.claims.registry import judge_all
from pathsum.records.explorers import TokenTableRow
from pathsum.records.results import Results
from pathsum.records.tokens import JOINER
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import Widget
from pathsum.report.page.explorer import UNITS, payload
from pathsum.report.page.render import SCRIPTS, html, markdown
from pathsum.report.story import story
from pathsum.report.themes import explorers
from tests.report import synthetic


def page(results: Results) -> tuple[str, str]:
    """Return the page and the Markdown report, without figures."""
    document = story(replace(results, calibration=[]), judge_all(results), {})
    return html(document), markdown(document)


def blocks(source: str) -> dict[str, Any]:
    found = re.findall(
        r'<script type="application/json" data-widget="explorers" data-model="([^"]*)">(.*?)</script>', source, re.S
    )
    return {name: json.loads(text) for name, text in found}


def test_tables_over_tokens_read_back() -> None:
    cell = synthetic.cell(1, 2, 0)
    data = payload(cell)
    size = len(synthetic.HOSTILE) * data["k"]
    assert [data["words"][t] for t in data["tokens"]] == [visible(t) for t in synthetic.HOSTILE]
    assert len(data["found"]) == len(data["values"]) == size * len(cell.rows(TokenTableRow))
    for i, row in enumerate(cell.rows(TokenTableRow)):
        assert data["tables"][i] == (row.table if row.layer is None else f"{row.table} L{row.layer}H{row.head}")
        here = slice(i * size, (i + 1) * size)
        assert [data["words"][t] for t in data["found"][here]] == [visible(t) for t in row.found.split(JOINER)]
        exact, unit = np.frombuffer(row.values, "<f4"), 1 / UNITS[row.table]
        assert np.abs(data["values"][here] * unit - exact).max() <= 0.5 * unit + 1e-12


def test_hostile_tokens_end_no_block_and_reach_the_page_as_text() -> None:
    source, _ = page(synthetic.results(heads=(2,), seeds=(0,)))
    found = blocks(source)
    assert set(found) == {"L0S0", "L1H2S0", "L2H2S0"}
    for data in found.values():
        assert {visible(token) for token in synthetic.HOSTILE} <= set(data["words"])
    assert "\u202e" not in source
    assert all(set("<>&").isdisjoint(text) for text in re.findall(r"application/json[^>]*>(.*?)</script>", source))


@pytest.mark.parametrize("layers", [(0,), (0, 1), (2,)])
def test_a_sweep_without_some_depth_has_its_explorer(layers: tuple[int, ...]) -> None:
    results = synthetic.results(layers=layers, heads=(2,), seeds=(0,))
    source, twin = page(results)
    assert set(blocks(source)) == set(results.cells)
    assert "Circuit explorer is on the page" in twin


def test_without_a_model_the_page_has_no_widget() -> None:
    source, twin = page(synthetic.results(layers=()))
    assert source.count("<script") == len(SCRIPTS)
    for form in (source, twin):
        assert form.count("No model of this sweep has what this section shows.") > 1


def test_the_circuit_explorer_has_the_lowest_loss_of_each_layer_count() -> None:
    results = synthetic.results(layers=(1,), heads=(2, 4), seeds=(0,))
    better = results.cells["L1H4S0"]
    cells = results.cells | {"L1H4S0": replace(better, summary=replace(better.summary, val_loss_nats=2.0))}
    (block,) = explorers.section(replace(results, cells=cells), {}).blocks
    assert isinstance(block, Widget)
    assert [model["name"] for model in block.models] == ["L1H4S0"]
