"""The sections on the labels of heads and on attention sinks, on records that are known."""

from __future__ import annotations

import dataclasses

from pathsum.records.ablations import AttentionSinkRow
from pathsum.records.heads import HeadRow, LabelRow
from pathsum.records.results import Results
from pathsum.report.page.roles import names
from pathsum.report.themes import attention_sinks, behaviour
from pathsum.report.told import Frames
from tests.report import synthetic
from tests.report.synthetic import only

CELL = synthetic.cell(2, 3, 0)


def texts(results: Results) -> list[list[str]]:
    (table,) = behaviour.section(results, {}).blocks
    return [[entry.text for entry in row] for row in table.rows]  # type: ignore[union-attr]


def test_the_labels_are_those_of_the_explorer_and_a_copying_head_without_one_is_marked() -> None:
    """Guards against labels that differ between the table and the pages, which find them on their own."""
    rows = [
        dataclasses.replace(r, labelled=r.head > 0, distance=r.distance and 3 * r.head - 3) for r in CELL.rows(LabelRow)
    ]
    cell = CELL.having(labels=rows)
    labels = [", ".join(names(cell, h.layer, h.head)) for h in cell.rows(HeadRow)]
    assert {"attends to itself", "attends 3 back"} <= set(", ".join(labels).split(", "))
    unlabelled = ["– (copies, by weights)" if h.copies else "–" for h in cell.rows(HeadRow)]
    assert [row[2] for row in texts(only(cell))[2:]] == [a or b for a, b in zip(labels, unlabelled, strict=True)]
    counts = behaviour.facts(Frames(only(cell).cells))["counts"][2]
    assert (counts["induction"], counts["attends 3 back"], counts["no label"]) == (4, 2, 2)


def test_the_facts_on_labels_are_those_of_the_records() -> None:
    found = behaviour.facts(Frames(synthetic.results().cells))
    assert found["sinks"] == 0
    weighted, plain = (found["induction"][name].tolist() for name in ("uniform, value-weighted", "induction: uniform"))
    assert weighted == plain != []
    assert found["lens"][2, 1].unique().tolist() == [5.0]
    unlabelled = CELL.having(labels=[dataclasses.replace(r, labelled=False) for r in CELL.rows(LabelRow)])
    assert "is – with it and – without it" in " ".join(behaviour.section(only(unlabelled), {}).paragraphs)
    assert behaviour.facts(Frames(only(CELL.having(labels=[])).cells)) == {}


def test_only_heads_whose_interval_is_above_the_threshold_and_the_control_are_counted() -> None:
    heads = CELL.rows(AttentionSinkRow)

    def found(**change: float) -> tuple[int, int]:
        rows = [dataclasses.replace(heads[0], **change), *heads[1:]]
        facts = attention_sinks.facts(Frames(only(CELL.having(attention_sinks=rows)).cells))
        assert len(facts["sinks"]) == 6
        return facts["sinks"].sum(), facts["needing"].sum()

    before = found()
    assert found(attention_low=0.31) == (before[0] + 1, before[1])
    assert found(attention_low=0.3) == before
    assert found(forbidden_low=0.2, control_high=0.1) == (before[0], before[1] + 1)
    assert found(forbidden_low=-0.1, control_high=-0.2) == before
    assert attention_sinks.facts(Frames(only(synthetic.cell(0, 0, 0)).cells)) == {}


def test_the_table_has_the_head_with_most_attention_to_the_first_token_and_every_layer() -> None:
    rows = [dataclasses.replace(r, attention=float((r.layer, r.head) == (1, 2))) for r in CELL.rows(AttentionSinkRow)]
    (table,) = attention_sinks.section(only(CELL.having(attention_sinks=rows)), {}).blocks
    assert sorted(row[1].text for row in table.rows) == ["L1H2", "layer 0", "layer 1"]  # type: ignore[union-attr]
