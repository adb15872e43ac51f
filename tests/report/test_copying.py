"""A head copies if weights and behavior agree. All three kinds of evidence are reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathsum.claims.judging import NOT, PARTLY, REPRODUCED, judge
from pathsum.claims.one_layer import CLAIMS, copying_heads
from pathsum.records.ablations import AblationRow
from pathsum.records.heads import HeadRow, LabelRow
from pathsum.records.results import Cell, Results
from pathsum.report.chapters import one_layer
from pathsum.report.themes.one_layer import paragraphs, table
from tests.report import synthetic

WORKS = synthetic.results(layers=(1,), heads=(4,), seeds=(0, 1))
NAME = "L1H4S0"


def behaving(cell: Cell, heads: int) -> Cell:
    """Let only the first ``heads`` heads raise the next token clearly."""
    labels = [
        r if r.head < heads or r.behaviour != "copies the next token" else replace(r, low=r.chance - 0.01)
        for r in cell.rows(LabelRow)
    ]
    return cell.having(labels=labels)


def with_cell(cell: Cell) -> Results:
    return replace(WORKS, cells=WORKS.cells | {NAME: cell})


def test_heads_of_positive_eigenvalues_that_do_not_behave_so_do_not_copy() -> None:
    """Guards against judging by eigenvalues alone: 12 of 20 heads by weights, 8 by behavior, none by intervention."""
    cells = {name: behaving(c, 0) for name, c in WORKS.cells.items()}
    assert all(h.copies for c in cells.values() for h in c.rows(HeadRow))
    found = judge(CLAIMS[0], replace(WORKS, cells=cells))
    assert (found.verdict, found.value) == (NOT, 0)
    assert "by weights alone 1.00" in found.detail


@pytest.mark.parametrize(("heads", "verdict"), [(2, PARTLY), (3, REPRODUCED)])
def test_half_of_the_heads_are_not_most(heads: int, verdict: str) -> None:
    assert judge(CLAIMS[0], with_cell(behaving(WORKS.cells[NAME], heads))).verdict == verdict


def test_behaviour_without_the_weights_is_not_enough() -> None:
    cell = WORKS.cells[NAME]
    flipped = cell.having(heads=[replace(h, copying_positivity=-h.copying_positivity) for h in cell.rows(HeadRow)])
    assert [(c.weights, c.behaviour, c.shown) for c in copying_heads(flipped)] == [(False, True, False)] * 4


def test_an_intervention_must_exceed_its_control() -> None:
    cell = WORKS.cells[NAME]
    assert [c.intervention for c in copying_heads(cell)] == [True, False, False, False]
    control = [replace(a, second_copy_high=9.0) if a.method == "rotated" else a for a in cell.rows(AblationRow)]
    assert not any(c.intervention for c in copying_heads(cell.having(ablations=control)))


def test_the_chapter_the_section_and_the_table_give_all_three() -> None:
    results = with_cell(behaving(WORKS.cells[NAME], 1))
    said = "(OV) circuit > 0.5), 5 of 8 by their behavior and 2 of 8 by intervention"
    chapter = " ".join(one_layer.chapter(results, {}).paragraphs)
    assert "8 of 8 heads copy. Yet on repeated random tokens, the output of 5 of these raises the next" in chapter
    assert "For 2 of the 8 heads, resample ablation raises the second copy's loss both significantly and" in chapter
    none = [replace(a, second_copy_low=-1.0) for a in WORKS.cells[NAME].rows(AblationRow)]
    bare = replace(results, cells={NAME: results.cells[NAME].having(ablations=none)})
    without = " ".join(one_layer.chapter(bare, {}).paragraphs)
    assert "For none of the 4 heads does resample ablation raise the second copy's loss both" in without
    assert said in paragraphs(list(results.cells.values()))[0]
    row = [e.text for e in table(results).rows[0]]
    assert row[:6] == ["grid, 1 layer", "8 of 8", "5 of 8", "2 of 8", "5 of 8", "2 of 8"]
    groups = [r[0].text for r in table(synthetic.results()).rows]
    assert {"grid, 2 layers", "control, smeared", "control, untrained"} <= set(groups)
