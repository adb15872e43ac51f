"""The section on interventions reports what the rows contain, whatever the results are."""

from __future__ import annotations

import dataclasses

from pathsum.claims.causal import CLAIMS, edge_label
from pathsum.claims.judging import NOT, REPRODUCED, judge
from pathsum.figures.causal import ablations
from pathsum.records.ablations import AblationRow, EdgeContrastRow
from pathsum.report.themes.causal import section
from tests.report import synthetic


def test_a_sweep_without_a_second_layer_says_that_nothing_was_intervened_on() -> None:
    results = synthetic.results(layers=(0, 1))
    found = section(results, {})
    assert found.blocks == ()
    assert found.paragraphs == ("This sweep has no model of two layers to intervene on.",)


def test_the_strongest_edge_of_each_kind_stands_in_the_table_with_its_interval() -> None:
    results = synthetic.results(layers=(2,), heads=(4,), seeds=(0,))
    (cell,) = results.cells.values()
    heads, edges, terms = section(results, {}).blocks
    assert [entry.text for entry in heads.rows[0][:4]] == ["L2H4S0", "L0H0", "+2.09", "L1H0"]
    assert [row[1].text[-3:] for row in edges.rows] == ["(K)", "(Q)", "(V)"]
    ablated = [a for a in cell.rows(AblationRow) if a.target == "edge" and a.method == "resample"]
    strongest = max(ablated, key=lambda a: a.second_copy_nats)
    assert edges.rows[0][1].text == edge_label(strongest) == "L0H0 → L1H0 (K)"
    assert edges.rows[0][4].text.startswith(f"{strongest.second_copy_nats:.2f} [{strongest.second_copy_low:.2f}, ")
    assert [row[1].text for row in terms.rows] == ["direct path", "single heads", "virtual heads"]


def test_one_head_a_layer_has_no_others_to_stand_beside() -> None:
    results = synthetic.results(layers=(2,), heads=(1,), seeds=(0,))
    figure = ablations(results)
    assert figure is not None
    _, heads, edges, _ = section(results, {"ablations": figure}).blocks
    assert [row[5].text for row in heads.rows] == ["–"]
    assert [row[5].text for row in edges.rows] == ["–"] * 3


def test_a_key_edge_whose_lead_may_be_chance_does_not_pass() -> None:
    """Guards against ranking edges by their means without a paired test."""
    results = synthetic.results(layers=(2,), heads=(4,), seeds=(0,))
    key_edge = next(c for c in CLAIMS if c.id == "induction_key_edge")
    assert judge(key_edge, results).verdict == REPRODUCED
    (cell,) = results.cells.values()
    close = [dataclasses.replace(c, difference_nats=0.036, low=-0.017, high=0.091) for c in cell.rows(EdgeContrastRow)]
    unsure = dataclasses.replace(results, cells={cell.name: cell.having(edge_contrasts=close)})
    found = judge(key_edge, unsure)
    assert found.verdict == NOT
    assert found.notes[cell.name].endswith("resample ablation 0.04 [−0.02, 0.09] (rivals: L0H0 → L1H0 (V))")
    assert found.unsure == [cell.name]


def test_the_table_of_all_single_ablations_says_how_few_windows_it_rests_on() -> None:
    heads, edges, _ = section(synthetic.results(layers=(2,), heads=(4,), seeds=(0,)), {}).blocks
    assert "means over 12 windows" in heads.caption
    assert "95 % intervals over 12 windows" in edges.caption


def test_a_model_extracted_without_distances_is_still_stated() -> None:
    results = synthetic.results(layers=(2,), seeds=(0,))
    bare = {name: c.having(distances=[]) for name, c in results.cells.items()}
    assert len(section(dataclasses.replace(results, cells=bare), {}).paragraphs) == 3


def test_a_model_without_ablated_q_edges_leaves_out_only_what_they_would_say() -> None:
    results = synthetic.results(layers=(2,), seeds=(0,))
    name, cell = next(iter(results.cells.items()))
    bare = cell.having(ablations=[a for a in cell.rows(AblationRow) if a.kind != "Q"])
    some, none = ({**results.cells, name: bare}, {name: bare})
    assert len(section(dataclasses.replace(results, cells=some), {}).paragraphs) == 4
    assert len(section(dataclasses.replace(results, cells=none), {}).paragraphs) == 3
