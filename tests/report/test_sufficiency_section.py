"""The claims and the section on sufficiency: what must remain, controls, and why the minimal circuit is not enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pathsum.claims.judging import NOT, REPRODUCED, judge
from pathsum.claims.registry import claims
from pathsum.claims.sufficiency import CONTROLS, MINIMAL_CONTROLS
from pathsum.records.results import Cell, Results
from pathsum.records.sufficiency import HEADS, Kept, SufficiencyRow
from pathsum.records.verdicts import ClaimResult
from pathsum.report.page.document import Table
from pathsum.report.themes.sufficiency import facts, section, sufficiency
from pathsum.report.told import Frames
from tests.report import synthetic

CELL = synthetic.cell(2, 4, 0)
BOTH = ("circuit_suffices", "minimal_circuit_suffices")


def only(cell: Cell) -> Results:
    return replace(synthetic.results(layers=(2,)), cells={cell.name: cell}, controls={})


def changed(*kept: Kept, **values: Any) -> Cell:
    rows = [replace(r, **values) if r.kept in kept else r for r in CELL.rows(SufficiencyRow)]
    return CELL.having(sufficiency=rows)


def judged(cell: Cell, name: str = "circuit_suffices") -> ClaimResult:
    return judge(claims()[name], only(cell))


def tables(cell: Cell) -> list[Table]:
    return [block for block in section(only(cell), {}).blocks if isinstance(block, Table)]


def test_the_circuit_must_keep_prefix_matching_and_gain() -> None:
    assert judged(CELL).verdict == REPRODUCED
    assert judged(changed(Kept.CIRCUIT, matching_share=0.49)).verdict == NOT
    lost = judged(changed(Kept.CIRCUIT, gain_share=0.4))
    assert lost.verdict == NOT
    assert "gain 0.40" in lost.detail
    assert judged(changed(Kept.CIRCUIT, gain_share=None, gain_low=None, gain_high=None)).verdict == NOT


@pytest.mark.parametrize("control", CONTROLS)
def test_every_control_without_previous_token_heads_must_be_clearly_lower(control: Kept) -> None:
    found = judged(changed(control, matching_share=0.6, matching_high=0.95))
    assert (found.verdict, found.value) == (NOT, 0.9)
    assert "best control 0.60, not clearly lower" in found.detail
    assert judged(changed(Kept.NO_TWO_BACK, matching_share=0.6, matching_high=0.95)).verdict == REPRODUCED


@pytest.mark.parametrize("control", MINIMAL_CONTROLS)
def test_the_minimal_circuit_has_its_own_controls_and_no_gain(control: Kept) -> None:
    assert judged(CELL, BOTH[1]).verdict == REPRODUCED
    assert judged(changed(control, matching_high=0.95), BOTH[1]).verdict == NOT
    assert judged(changed(control, matching_high=0.95)).verdict == REPRODUCED
    assert judged(changed(*CONTROLS, matching_high=0.95), BOTH[1]).verdict == REPRODUCED


@pytest.mark.parametrize("kept", [tuple(Kept), (Kept.CIRCUIT, Kept.MINIMAL), (*CONTROLS, *MINIMAL_CONTROLS)])
def test_without_a_share_neither_claim_has_a_value_and_the_section_shows_a_dash(kept: tuple[Kept, ...]) -> None:
    cell = changed(*kept, matching_share=None, matching_low=None, matching_high=None)
    for name in BOTH:
        found = judged(cell, name)
        assert (found.verdict, found.value) == (NOT, None)
        assert "too little matching" in found.detail
        assert "no induction head past the first layer" in judged(CELL.having(sufficiency=[]), name).detail
    heads = tables(cell)[0]
    assert [row[3].text for row in heads.rows if row[1].text in kept] == ["–" for k in HEADS[1:] if k in kept]
    assert sufficiency(only(cell)) is not None


def test_the_section_and_the_figure_show_every_share() -> None:
    two = changed(Kept.KEYS, heads="L0H0 L0H2")
    found = facts(Frames({c.name: c for c in (two, synthetic.cell(2, 4, 1))}))
    assert found["several"].tolist() == [True, False]
    assert found["shares"]["KEYS"].tolist() == [0.45, 0.45]
    assert facts(Frames(only(synthetic.cell(1, 4, 0)).cells)) == {}
    heads, paths = tables(two)
    assert [row[1].text for row in heads.rows] == [str(k) for k in HEADS[1:]]
    assert [row[0].text for row in paths.rows] == [str(k) for k in Kept if k not in HEADS]
    assert paths.rows[1][1].text == "0.45"
    drawn = sufficiency(only(CELL))
    assert drawn is not None
    assert list(drawn.data["kept"]) == [str(k) for k in Kept if k is not Kept.MODEL]
    assert sufficiency(only(CELL.having(sufficiency=[]))) is None
