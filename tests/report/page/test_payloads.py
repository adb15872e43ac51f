"""The data of the live parts of the page are those of the records. Tokens that look like markup are shown as text."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pathsum.claims.formatting import head_label
from pathsum.claims.registry import judge_all
from pathsum.records.ablations import AblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.explorers import PatternRow, TokenTableRow
from pathsum.records.heads import HeadRow
from pathsum.records.tokens import JOINER
from pathsum.report.figures.symbols import visible
from pathsum.report.page import explorer, heads_and_edges
from pathsum.report.page.render import SCRIPTS, html, markdown
from pathsum.report.page.watch_it_learn import LEVELS, payload, watched
from pathsum.report.story import story
from pathsum.report.themes import explorers
from tests.report import synthetic
from tests.report.page.watched import with_torch_patterns


def blocks(source: str) -> dict[str, Any]:
    found = re.findall(
        r'<script type="application/json" data-widget="explorers" data-model="([^"]*)">(.*?)</script>', source, re.S
    )
    return {name: json.loads(text) for name, text in found}


def test_tables_over_tokens_read_back() -> None:
    cell = synthetic.cell(1, 2, 0)
    data = explorer.payload(cell)
    size = len(synthetic.HOSTILE) * data["k"]
    assert [data["words"][t] for t in data["tokens"]] == [visible(t) for t in synthetic.HOSTILE]
    assert len(data["found"]) == len(data["values"]) == size * len(cell.rows(TokenTableRow))
    for i, row in enumerate(cell.rows(TokenTableRow)):
        assert data["tables"][i] == (row.table if row.layer is None else f"{row.table} L{row.layer}H{row.head}")
        here = slice(i * size, (i + 1) * size)
        assert [data["words"][t] for t in data["found"][here]] == [visible(t) for t in row.found.split(JOINER)]
        exact, unit = np.frombuffer(row.values, "<f4"), 1 / explorer.UNITS[row.table]
        assert np.abs(data["values"][here] * unit - exact).max() <= 0.5 * unit + 1e-12


@pytest.mark.parametrize("layers", [(), (0,), (0, 1), (2,)])
def test_a_sweep_without_some_depth_has_the_live_parts_that_its_models_allow(layers: tuple[int, ...]) -> None:
    results = replace(synthetic.results(layers=layers, heads=(2,), seeds=(0,)), calibration=[])
    document = story(results, judge_all(results), {})
    source, twin = html(document), markdown(document)
    assert set(blocks(source)) == set(results.cells)
    for data in blocks(source).values():
        assert {visible(token) for token in synthetic.HOSTILE} <= set(data["words"])
    assert "\u202e" not in source
    assert all(set("<>&").isdisjoint(text) for text in re.findall(r"application/json[^>]*>(.*?)</script>", source))
    assert ("Circuit explorer is on the page" in twin) == bool(layers)
    assert ('data-widget="watch_it_learn"' in source) == (max(layers, default=0) > 0)
    if not layers:
        assert source.count("<script") == len(SCRIPTS)


def test_the_circuit_explorer_has_the_lowest_loss_of_each_layer_count() -> None:
    results = synthetic.results(layers=(1,), heads=(2, 4), seeds=(0,))
    better = results.cells["L1H4S0"]
    cells = results.cells | {"L1H4S0": replace(better, summary=replace(better.summary, val_loss_nats=2.0))}
    (block,) = explorers.section(replace(results, cells=cells), {}).blocks
    assert [model["name"] for model in block.models] == ["L1H4S0"]  # type: ignore[union-attr]


def test_every_head_and_edge_has_the_numbers_of_its_records() -> None:
    cell = synthetic.cell(2, 2, 0)
    data = heads_and_edges.payload(cell)
    assert [h["name"] for h in data["heads"]] == [head_label(h.layer, h.head) for h in cell.rows(HeadRow)]
    cuts = {
        (r.kind, r.early_layer, r.early_head, r.layer, r.head): r
        for r in cell.rows(AblationRow)
        if (r.target, r.method, r.patterns) == ("edge", heads_and_edges.METHOD, "recomputed")
    }
    assert len(cuts) == len(data["edges"]) == 12
    for shown, e in zip(data["edges"], cell.rows(CompositionRow), strict=True):
        assert (shown["kind"], shown["early"]) == (e.kind, head_label(e.early_layer, e.early_head))
        assert shown["composition"] == pytest.approx(e.varying, abs=5e-4)
        cut = cuts[e.kind, e.early_layer, e.early_head, e.late_layer, e.late_head]
        second = [cut.second_copy_nats, cut.second_copy_low, cut.second_copy_high]
        assert shown["cost"]["second"] == pytest.approx(second, abs=5e-4)
        assert shown["cost"]["text"][0] == pytest.approx(cut.loss_nats, abs=5e-5)
    uncut = heads_and_edges.payload(cell.having(ablations=[]))
    assert {shown["cost"] for shown in uncut["edges"]} == {None}
    one = heads_and_edges.payload(synthetic.cell(1, 2, 0))
    assert (len(one["heads"]), one["edges"]) == (2, [])


def test_patterns_read_back_by_passage_head_entry_and_checkpoint() -> None:
    cell = with_torch_patterns(synthetic.cell(2, 2, 0))
    data = payload(cell)
    packed = data["patterns"].tobytes()
    size = len(data["passages"][0]["tokens"])
    entries, frames = size * (size + 1) // 2, len(cell.log) + 1
    assert len(packed) == 2 * 4 * entries * frames == len(cell.rows(PatternRow)) * entries
    for row in cell.rows(PatternRow):
        frame = len(cell.log) if row.weighted else data["tokens_seen"].index(row.tokens_seen)
        start = (row.passage * 4 + data["heads"].index(f"L{row.layer}H{row.head}")) * entries
        history = packed[start * frames + frame : (start + entries) * frames : frames]
        assert all(abs(a / LEVELS - b / 255) <= 0.5 / LEVELS for a, b in zip(history, row.attention, strict=True))


def test_the_curves_are_those_of_the_log_and_the_onset_that_of_the_summary() -> None:
    cell = synthetic.cell(2, 2, 0)
    data = payload(cell)
    assert data["onset"] == cell.summary.onset_tokens is not None
    assert data["loss"] == [round(e.val_loss_nats, 3) for e in cell.log]
    for name in ("prefix_matching", "previous_token"):
        assert data[name][3] == [round(getattr(e, name)[1][1], 3) for e in cell.log]
    assert data["heads"][data["look"]] == "L1H0"  # the induction head


def test_the_models_to_watch_are_all_seeds_of_the_deepest_and_one_of_each_contrast() -> None:
    results = synthetic.results(heads=(2, 4), seeds=(0, 1))
    found = [cell.name for cell in watched(results)]
    assert sorted(found[:2]) == ["L2H4S0", "L2H4S1"]
    assert found[2:] in (["L1H4S0", "smeared"], ["L1H4S1", "smeared"])
    cells = {name: c if name == found[2] else c.having(patterns=[]) for name, c in results.cells.items()}
    assert [c.name for c in watched(replace(results, cells=cells))] == [found[2], "smeared"]
