"""The section on the weights of single heads reports what the records contain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathsum.records.results import Results
from pathsum.records.weights_side import DeletingRow, VirtualHeadRow
from pathsum.report.page.document import Table
from pathsum.report.themes.weights_side import facts, section, subspaces
from pathsum.report.told import Frames
from tests.report import synthetic

TWO = synthetic.results(layers=(2,), heads=(3,), seeds=(0,))
CELL = TWO.cells["L2H3S0"]


def having(**tables: list[Any]) -> Results:
    return replace(TWO, cells={CELL.name: CELL.having(**tables)})


def said(results: Results) -> str:
    return " ".join(section(results, {}).paragraphs)


def test_the_costliest_virtual_head_is_named_and_comes_first() -> None:
    costly = replace(CELL.rows(VirtualHeadRow)[4], cost_nats=0.5)
    results = having(virtual_heads=[*CELL.rows(VirtualHeadRow)[:4], costly])
    found = facts(Frames(results.cells))
    assert found["tops"][["early", "late", "cost_nats"]].to_numpy().tolist() == [["L0H1", "L1H1", 0.5]]
    assert found["ends"].tolist() == [False]
    table = section(results, {}).blocks[-1]
    assert isinstance(table, Table)
    assert table.rows[0][1].text == "L0H1 → L1H1"
    assert "for the most important one of each model (most in L2H3S0, L0H1 → L1H1)" in said(results)


def test_heads_that_delete_are_counted_beyond_chance_only() -> None:
    rows = [replace(CELL.rows(DeletingRow)[0], alignment=a, spread=0.01) for a in (-0.9, -0.02, 0.9)]
    told = "It is −0.90 to 0.90, and more than 3 standard deviations below chance (0) in 1 of 3 heads"
    assert told in said(having(deleting=rows))


def test_the_figure_marks_the_edge_from_the_previous_token_head_to_the_induction_head() -> None:
    figure = subspaces(TWO)
    assert figure is not None
    marked = figure.data[figure.data["induction"]]
    assert list(marked["kind"]) == ["Q", "K", "V"]
    assert set(zip(marked["early"], marked["late"], strict=True)) == {("L0H0", "L1H0")}
    assert subspaces(synthetic.results(layers=(0, 1))) is None
