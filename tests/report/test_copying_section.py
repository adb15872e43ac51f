"""A head copies by its weights. Behavior on text and intervention are reported beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathsum.claims.judging import NOT, PARTLY, REPRODUCED, judge
from pathsum.claims.one_layer import CLAIMS
from pathsum.records.ablations import AblationRow
from pathsum.records.heads import SPREADS, CopyingRow, HeadRow, LabelRow
from pathsum.records.results import Cell, Results
from pathsum.report.chapters import one_chapter
from pathsum.report.page.document import Table
from pathsum.report.themes.one_layer import facts, section
from tests.report import synthetic

WORKS = synthetic.results(layers=(1,), heads=(4,), seeds=(0, 1))
NAME = "L1H4S0"


def behaving(cell: Cell, heads: int) -> Cell:
    """Let only the first ``heads`` heads raise the tokens that they attend to."""
    rows = [r if r.head < heads else replace(r, attended_low=r.bar) for r in cell.rows(CopyingRow)]
    return cell.having(copying=rows)


def copying(cell: Cell, heads: int) -> Cell:
    """Let only the first ``heads`` heads copy by their weights."""
    rows = [h if h.head < heads else replace(h, copying_positivity=0.4) for h in cell.rows(HeadRow)]
    return cell.having(heads=rows)


def with_cell(cell: Cell) -> Results:
    return replace(WORKS, cells=WORKS.cells | {NAME: cell})


def test_neither_behaviour_nor_induction_decides_the_claim() -> None:
    """Guards against a condition that needs induction: next tokens are raised by heads that attend to them."""
    for cell in WORKS.cells.values():
        low = [replace(r, low=-1.0, score=-1.0) for r in cell.rows(LabelRow)]
        changed = behaving(cell, 0).having(labels=low)
        assert judge(CLAIMS[0], replace(WORKS, cells={cell.name: changed})).value == 1


@pytest.mark.parametrize(("heads", "verdict"), [(0, PARTLY), (2, PARTLY), (3, REPRODUCED)])
def test_half_of_the_heads_are_not_most(heads: int, verdict: str) -> None:
    assert judge(CLAIMS[0], with_cell(copying(WORKS.cells[NAME], heads))).verdict == verdict
    assert judge(CLAIMS[0], replace(WORKS, cells={NAME: copying(WORKS.cells[NAME], 2)})).verdict == NOT


def test_behaviour_must_exceed_random_rotations_and_an_intervention_its_control() -> None:
    def says(kind: str, cell: Cell) -> list[bool]:
        return facts(replace(WORKS, cells={NAME: cell}))["one"][kind].dropna().tolist()

    cell = WORKS.cells[NAME]
    assert says("behaviour", behaving(cell, 2)) == [True, True, False, False]
    assert says("behaviour", cell.having(copying=[])) == []
    row = cell.rows(CopyingRow)[0]
    assert row.bar == SPREADS * row.spread_nats > 0
    assert says("intervention", cell) == [True, False, False, False]
    control = [replace(a, second_copy_high=9.0) if a.method == "rotated" else a for a in cell.rows(AblationRow)]
    assert not any(says("intervention", cell.having(ablations=control)))


def test_the_chapter_the_section_and_the_tables_give_all_three() -> None:
    results = with_cell(behaving(copying(WORKS.cells[NAME], 3), 1))
    chapter = " ".join(one_chapter(results, {}).paragraphs)
    assert "7 of 8 heads copy. On text, the output of 5 of 7 such heads raises the tokens that the head" in chapter
    assert "and so does that of 0 of 1 other." in chapter
    found = facts(results)
    assert found["one"][["weights", "behaviour", "intervention"]].sum().tolist() == [7, 5, 2]
    assert found["copying_heads"]["behaviour"].tolist().count(True) == 5
    assert found["other_heads"]["behaviour"].tolist() == [False]
    told = section(results, {})
    grid, on_text, *_ = tables = [block for block in told.blocks if isinstance(block, Table)]
    assert [e.text for e in grid.rows[0]][:5] == ["grid, 1 layer", "7 of 8", "5 of 8", "2 of 8", "2 of 8"]
    assert (len(on_text.rows), len(tables)) == (8, 4)
    assert {"grid, 2 layers", "control, smeared", "control, untrained"} <= set(
        facts(synthetic.results())["heads"]["models"]
    )
