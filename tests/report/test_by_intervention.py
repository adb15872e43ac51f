"""The section on interventions reports what the rows contain, whatever the results are."""

from __future__ import annotations

import dataclasses

from pathsum.claims.causal import CLAIMS
from pathsum.claims.judging import NOT, REPRODUCED, judge
from pathsum.records.ablations import AblationRow, EdgeContrastRow
from pathsum.records.results import Results
from pathsum.report.page.document import Table
from pathsum.report.themes.causal import ablations, facts, section
from pathsum.report.told import Frames
from tests.report import synthetic
from tests.report.synthetic import only

RESULTS = synthetic.results(layers=(2,), heads=(4,), seeds=(0,))
(CELL,) = RESULTS.cells.values()


def texts(results: Results) -> list[list[list[str]]]:
    """Return the entries of the tables of the section."""
    tables = [block for block in section(results, {}).blocks if isinstance(block, Table)]
    return [[[entry.text for entry in row] for row in table.rows] for table in tables]


def test_the_strongest_edge_of_each_kind_stands_in_the_table_with_its_interval() -> None:
    heads, edges, terms = texts(RESULTS)
    assert heads[0][:4] == ["L2H4S0", "L0H0", "+2.09", "L1H0"]
    assert [row[1][-3:] for row in edges] == ["(K)", "(Q)", "(V)"]
    ablated = [a for a in CELL.rows(AblationRow) if a.target == "edge" and a.method == "resample"]
    strongest = max(ablated, key=lambda a: a.second_copy_nats)
    assert edges[0][1] == "L0H0 → L1H0 (K)"
    assert edges[0][4].startswith(f"{strongest.second_copy_nats:.2f} [{strongest.second_copy_low:.2f}, ")
    assert [row[1] for row in terms] == ["direct path", "single heads", "virtual heads"]


def test_one_head_a_layer_has_no_others_to_stand_beside() -> None:
    results = synthetic.results(layers=(2,), heads=(1,), seeds=(0,))
    assert ablations(results) is not None
    heads, edges, _ = texts(results)
    assert [row[5] for row in heads] == ["–"]
    assert [row[5] for row in edges] == ["–"] * 3


def test_a_key_edge_whose_lead_may_be_chance_does_not_pass() -> None:
    """Guards against ranking edges by their means without a paired test."""
    key_edge = next(c for c in CLAIMS if c.id == "induction_key_edge")
    assert judge(key_edge, RESULTS).verdict == REPRODUCED
    close = [dataclasses.replace(c, difference_nats=0.036, low=-0.017, high=0.091) for c in CELL.rows(EdgeContrastRow)]
    unsure = only(CELL.having(edge_contrasts=close))
    found = judge(key_edge, unsure)
    assert found.verdict == NOT
    assert found.notes[CELL.name].endswith("resample ablation 0.04 [−0.02, 0.09] (rivals: L0H0 → L1H0 (V))")
    assert found.unsure == [CELL.name]
    least = facts(Frames(unsure.cells))["least"].iloc[0]
    assert (least["difference"], least["rival"]) == ("0.04 [−0.02, 0.09]", "outside")


def test_the_least_contrast_is_of_the_smallest_difference_under_resample_ablation() -> None:
    rows = [
        dataclasses.replace(c, difference_nats={"resample": 1.0, "zero": 0.1}[c.method] - (c.rival == "V") / 2)
        for c in CELL.rows(EdgeContrastRow)
    ]
    least = facts(Frames(only(CELL.having(edge_contrasts=rows)).cells))["least"].iloc[0]
    assert (least["difference"][:4], least["rival"]) == ("0.50", "V")


def test_a_model_extracted_without_distances_or_without_q_edges_is_still_stated() -> None:
    """What is missing in one model is left out for this model alone."""
    bare = CELL.having(ablations=[a for a in CELL.rows(AblationRow) if a.kind != "Q"])
    other = synthetic.cell(2, 4, 1)
    for cells, known in (((CELL, other), 2), ((bare, other), 1), ((bare,), 0), ((CELL.having(distances=[]),), 0)):
        assert len(facts(Frames(only(*cells).cells))["own"]) == known
        assert len(section(only(*cells), {}).paragraphs) == (4 if known else 3)
