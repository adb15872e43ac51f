"""The sections on interventions, on sufficiency and on copying, and the claims that they show: what must remain, and
what controls must not reach."""

from dataclasses import replace
from typing import Any

import pytest

from pathsum.claims import one_layer
from pathsum.claims.judging import NOT, PARTLY, REPRODUCED, judge
from pathsum.claims.registry import claims
from pathsum.claims.sufficiency import CONTROLS, MINIMAL_CONTROLS
from pathsum.records.ablations import AblationRow, EdgeContrastRow
from pathsum.records.heads import SPREADS, CopyingRow, HeadRow, LabelRow
from pathsum.records.results import Cell, Results
from pathsum.records.sufficiency import HEADS, Kept, SufficiencyRow
from pathsum.records.verdicts import ClaimResult
from pathsum.report.chapters import one_chapter
from pathsum.report.themes import causal, sufficiency
from pathsum.report.themes.one_layer import facts as copying_facts
from tests.report import synthetic
from tests.report.synthetic import frames, only, texts

CELL = synthetic.cell(2, 4, 0)
KEY_EDGE = claims()["induction_key_edge"]


# ---- one head and one edge at a time --------------------------------------------------------------------------------


def test_the_strongest_edge_of_each_kind_stands_in_the_table_with_its_interval() -> None:
    heads, edges, terms = texts(causal.section(only(CELL), {}))
    assert heads[0][:4] == ["L2H4S0", "L0H0", "+2.09", "L1H0"]
    assert [row[1][-3:] for row in edges] == ["(K)", "(Q)", "(V)"]
    ablated = [a for a in CELL.rows(AblationRow) if a.target == "edge" and a.method == "resample"]
    strongest = max(ablated, key=lambda a: a.second_copy_nats)
    assert edges[0][1] == "L0H0 → L1H0 (K)"
    assert edges[0][4].startswith(f"{strongest.second_copy_nats:.2f} [{strongest.second_copy_low:.2f}, ")
    assert [row[1] for row in terms] == ["direct path", "single heads", "virtual heads"]
    alone = only(synthetic.cell(2, 1, 0))  # has no other heads
    assert causal.ablations(alone) is not None
    heads, edges, _ = texts(causal.section(alone, {}))
    assert [row[5] for row in (*heads, *edges)] == ["–"] * 4


def test_a_key_edge_whose_lead_may_be_chance_does_not_pass() -> None:
    """Guards against ranking edges by their means without a paired test."""
    assert judge(KEY_EDGE, only(CELL)).verdict == REPRODUCED
    close = [replace(c, difference_nats=0.036, low=-0.017, high=0.091) for c in CELL.rows(EdgeContrastRow)]
    unsure = CELL.having(edge_contrasts=close)
    found = judge(KEY_EDGE, only(unsure))
    assert found.verdict == NOT
    assert found.notes[CELL.name].endswith("resample ablation 0.04 [−0.02, 0.09] (rivals: L0H0 → L1H0 (V))")
    assert found.unsure == [CELL.name]
    least = causal.facts(frames(unsure))["least"].iloc[0]
    assert (least["difference"], least["rival"]) == ("0.04 [−0.02, 0.09]", "outside")


def test_the_least_contrast_is_of_the_smallest_difference_under_resample_ablation() -> None:
    rows = [
        replace(c, difference_nats={"resample": 1.0, "zero": 0.1}[c.method] - (c.rival == "V") / 2)
        for c in CELL.rows(EdgeContrastRow)
    ]
    least = causal.facts(frames(CELL.having(edge_contrasts=rows)))["least"].iloc[0]
    assert (least["difference"][:4], least["rival"]) == ("0.50", "V")


def test_what_one_model_lacks_is_left_out_for_this_model_alone() -> None:
    bare = CELL.having(ablations=[a for a in CELL.rows(AblationRow) if a.kind != "Q"])
    other = synthetic.cell(2, 4, 1)
    for cells, known in (((CELL, other), 2), ((bare, other), 1), ((bare,), 0), ((CELL.having(distances=[]),), 0)):
        assert len(causal.facts(frames(*cells))["own"]) == known
        assert len(causal.section(only(*cells), {}).paragraphs) == (4 if known else 3)


# ---- sufficiency ----------------------------------------------------------------------------------------------------


def changed(*kept: Kept, **values: Any) -> Cell:
    rows = [replace(r, **values) if r.kept in kept else r for r in CELL.rows(SufficiencyRow)]
    return CELL.having(sufficiency=rows)


def judged(cell: Cell, name: str = "circuit_suffices") -> ClaimResult:
    return judge(claims()[name], only(cell))


def test_the_circuit_must_keep_prefix_matching_and_gain() -> None:
    assert judged(CELL).verdict == REPRODUCED
    for lost in (
        {"matching_share": 0.49},
        {"gain_share": 0.4},
        {"gain_share": None, "gain_low": None, "gain_high": None},
    ):
        assert judged(changed(Kept.CIRCUIT, **lost)).verdict == NOT


@pytest.mark.parametrize("control", CONTROLS)
def test_every_control_without_previous_token_heads_must_be_clearly_lower(control: Kept) -> None:
    found = judged(changed(control, matching_share=0.6, matching_high=0.95))
    assert (found.verdict, found.value) == (NOT, 0.9)
    assert "best control 0.60, not clearly lower" in found.detail
    assert judged(changed(Kept.NO_TWO_BACK, matching_share=0.6, matching_high=0.95)).verdict == REPRODUCED


@pytest.mark.parametrize("control", MINIMAL_CONTROLS)
def test_the_minimal_circuit_has_its_own_controls_and_no_gain(control: Kept) -> None:
    minimal = "minimal_circuit_suffices"
    assert judged(CELL, minimal).verdict == REPRODUCED
    assert judged(changed(control, matching_high=0.95), minimal).verdict == NOT
    assert judged(changed(control, matching_high=0.95)).verdict == REPRODUCED
    assert judged(changed(*CONTROLS, matching_high=0.95), minimal).verdict == REPRODUCED


@pytest.mark.parametrize("kept", [tuple(Kept), (Kept.CIRCUIT, Kept.MINIMAL), (*CONTROLS, *MINIMAL_CONTROLS)])
def test_without_a_share_neither_claim_has_a_value_and_the_section_shows_a_dash(kept: tuple[Kept, ...]) -> None:
    cell = changed(*kept, matching_share=None, matching_low=None, matching_high=None)
    for name in ("circuit_suffices", "minimal_circuit_suffices"):
        found = judged(cell, name)
        assert (found.verdict, found.value) == (NOT, None)
        assert "too little matching" in found.detail
        assert "no induction head past the first layer" in judged(CELL.having(sufficiency=[]), name).detail
    heads, *_ = texts(sufficiency.section(only(cell), {}))
    assert [row[3] for row in heads if row[1] in kept] == ["–" for k in HEADS[1:] if k in kept]
    assert sufficiency.sufficiency(only(cell)) is not None


def test_the_section_and_the_figure_show_every_share() -> None:
    two = changed(Kept.KEYS, heads="L0H0 L0H2")
    found = sufficiency.facts(frames(two, synthetic.cell(2, 4, 1)))
    assert found["several"].tolist() == [True, False]
    assert found["shares"]["KEYS"].tolist() == [0.45, 0.45]
    assert sufficiency.facts(frames(synthetic.cell(1, 4, 0))) == {}
    heads, paths = texts(sufficiency.section(only(two), {}))
    assert [row[1] for row in heads] == [str(k) for k in HEADS[1:]]
    assert [row[0] for row in paths] == [str(k) for k in Kept if k not in HEADS]
    assert paths[1][1] == "0.45"
    drawn = sufficiency.sufficiency(only(CELL))
    assert drawn is not None
    assert list(drawn.data["kept"]) == [str(k) for k in Kept if k is not Kept.MODEL]
    assert sufficiency.sufficiency(only(CELL.having(sufficiency=[]))) is None


# ---- copying: by weights, with behavior on text and intervention beside it ------------------------------------------

ONE = synthetic.results(layers=(1,), heads=(4,), seeds=(0, 1))
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
    return replace(ONE, cells=ONE.cells | {NAME: cell})


def test_neither_behaviour_nor_induction_decides_the_claim() -> None:
    """Guards against a condition that needs induction: next tokens are raised by heads that attend to them."""
    for cell in ONE.cells.values():
        low = [replace(r, low=-1.0, score=-1.0) for r in cell.rows(LabelRow)]
        assert judge(one_layer.CLAIMS[0], only(behaving(cell, 0).having(labels=low))).value == 1


@pytest.mark.parametrize(("heads", "verdict"), [(0, PARTLY), (2, PARTLY), (3, REPRODUCED)])
def test_half_of_the_heads_are_not_most(heads: int, verdict: str) -> None:
    assert judge(one_layer.CLAIMS[0], with_cell(copying(ONE.cells[NAME], heads))).verdict == verdict
    assert judge(one_layer.CLAIMS[0], only(copying(ONE.cells[NAME], 2))).verdict == NOT


def test_behaviour_must_exceed_random_rotations_and_an_intervention_its_control() -> None:
    def says(kind: str, cell: Cell) -> list[bool]:
        return copying_facts(replace(ONE, cells={NAME: cell}))["one"][kind].dropna().tolist()

    cell = ONE.cells[NAME]
    assert says("behaviour", behaving(cell, 2)) == [True, True, False, False]
    assert says("behaviour", cell.having(copying=[])) == []
    row = cell.rows(CopyingRow)[0]
    assert row.bar == SPREADS * row.spread_nats > 0
    assert says("intervention", cell) == [True, False, False, False]
    control = [replace(a, second_copy_high=9.0) if a.method == "rotated" else a for a in cell.rows(AblationRow)]
    assert not any(says("intervention", cell.having(ablations=control)))


def test_all_three_are_counted_beside_each_other() -> None:
    results = with_cell(behaving(copying(ONE.cells[NAME], 3), 1))
    found = copying_facts(results)
    assert found["one"][["weights", "behaviour", "intervention"]].sum().tolist() == [7, 5, 2]
    assert found["copying_heads"]["behaviour"].tolist().count(True) == 5
    assert found["other_heads"]["behaviour"].tolist() == [False]
    assert "7 of 8 heads copy. On text, the output of 5 of 7 such" in " ".join(one_chapter(results, {}).paragraphs)
    with_controls = copying_facts(synthetic.results())["heads"]["models"]
    assert {"grid, 2 layers", "control, smeared", "control, untrained"} <= set(with_controls)
