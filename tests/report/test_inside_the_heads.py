"""The section on the weights of single heads reports what the records contain."""

from __future__ import annotations

from dataclasses import replace

from pathsum.page.document import Table
from pathsum.records.subspaces import DeletingRow
from pathsum.records.virtual_heads import VirtualHeadRow
from pathsum.report.themes.weights_side import section
from tests.report import synthetic

TWO = synthetic.results(layers=(2,), heads=(3,), seeds=(0,))
CELL = TWO.cells["L2H3S0"]


def said(**tables: object) -> str:
    cell = CELL.having(**tables)  # type: ignore[arg-type]
    return " ".join(section(replace(TWO, cells={cell.name: cell}), {}).paragraphs)


def test_a_sweep_without_heads_says_so() -> None:
    found = section(synthetic.results(layers=(0,)), {})
    assert found.paragraphs == ("This sweep has no heads.",)
    assert found.blocks == ()


def test_the_costliest_virtual_head_is_named_and_comes_first() -> None:
    costly = replace(CELL.rows(VirtualHeadRow)[4], cost_nats=0.5)
    cell = CELL.having(virtual_heads=[*CELL.rows(VirtualHeadRow)[:4], costly])
    found = section(replace(TWO, cells={cell.name: cell}), {})
    table = found.blocks[-1]
    assert isinstance(table, Table)
    assert table.rows[0][1].text == "L0H1 → L1H1"
    told = "(most in L2H3S0, L0H1 → L1H1). In 0 of the 1 model with an induction head, the later head of "
    assert f"raises the held-out loss by 0.500 nats per token {told}" in " ".join(found.paragraphs)


def test_heads_that_delete_are_counted_beyond_chance_only() -> None:
    rows = [replace(CELL.rows(DeletingRow)[0], alignment=a, spread=0.01) for a in (-0.9, -0.02, 0.9)]
    told = "It is −0.90 to 0.90, and more than 3 standard deviations below chance (0) in 1 of 3 heads"
    assert told in said(deleting=rows)


def test_where_no_two_heads_look_alike_the_report_says_so() -> None:
    assert "No two heads of a layer attend to the same positions" in said(joint_copying=[])
