"""The patterns of every checkpoint are packed and read back, of the models that are worth their space."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathsum.claims.registry import judge_all
from pathsum.records.explorers import PatternRow
from pathsum.report.page.render import html
from pathsum.report.page.watch_it_learn import LEVELS, payload, watched
from pathsum.report.story import story
from pathsum.report.themes import watch_it_learn as theme
from tests.report import synthetic
from tests.report.page.watched import with_torch_patterns


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
    best = cell.formed_induction_head()
    assert best is not None
    assert data["heads"][data["look"]] == f"L{best.layer}H{best.head}"


def test_the_models_are_all_seeds_of_the_deepest_and_one_of_each_contrast() -> None:
    results = synthetic.results(heads=(2, 4), seeds=(0, 1))
    found = [cell.name for cell in watched(results)]
    assert found[0] in ("L2H4S0", "L2H4S1")
    assert sorted(found[:2]) == ["L2H4S0", "L2H4S1"]
    assert found[2:] in (["L1H4S0", "smeared"], ["L1H4S1", "smeared"])
    cells = {name: c if name == found[2] else c.having(patterns=[]) for name, c in results.cells.items()}
    assert [c.name for c in watched(replace(results, cells=cells))] == [found[2], "smeared"]


@pytest.mark.parametrize("layers", [(), (0,)])
def test_without_heads_there_is_nothing_to_watch(layers: tuple[int, ...]) -> None:
    results = synthetic.results(layers=layers)
    assert theme.section(results, {}).blocks == ()
    assert 'data-widget="watch_it_learn"' not in html(story(replace(results, calibration=[]), judge_all(results), {}))
