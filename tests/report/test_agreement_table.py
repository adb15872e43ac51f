"""Three kinds of evidence are compared as they are in the records, each with its own threshold."""

import dataclasses
from typing import Any

import pandas as pd
import pytest

from pathsum.records.ablations import AblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import HeadRow, LabelRow
from pathsum.records.results import Cell
from pathsum.report.chapters import agreeing
from pathsum.report.themes.agreement import SAYS, agreed, agreement, counts, evidence, facts, named
from tests.report import synthetic
from tests.report.synthetic import frames

CELL = synthetic.cell(2, 3, 0)


def says(cell: Cell, question: str, name: str) -> list[bool | None]:
    rows = evidence(frames(cell)).set_index(["question", "name"])
    return [None if pd.isna(yes) else bool(yes) for yes in rows.loc[(question, name), SAYS]]


def replaced(rows: list[Any], condition: Any, **changes: Any) -> list[Any]:
    return [dataclasses.replace(row, **changes) if condition(row) else row for row in rows]


@pytest.mark.parametrize(
    ("answers", "share", "kappa"),
    [
        ([(True, True), (False, False)], 1.0, 1.0),
        ([(True, False), (False, True)], 0.0, -1.0),
        ([(a, b) for a in (True, False) for b in (True, False)], 0.5, 0.0),
        ([(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15, 0.7, 0.4),
        ([(True, False), (False, False)], 0.5, 0.0),
        ([(False, False)] * 7, 1.0, None),
        ([(True, False), (True, None), (None, True), (False, True)], 0.0, -1.0),
        ([(True, None), (None, True)], None, None),
    ],
)
def test_kappa_is_the_excess_over_what_the_counts_alone_would_give(
    answers: list[tuple[bool, bool]], share: float | None, kappa: float | None
) -> None:
    pairs = pd.DataFrame(answers, columns=["a", "b"], dtype="boolean")
    assert agreement(pairs["a"], pairs["b"]) == (None if share is None else (share, kappa, len(pairs.dropna())))


def test_the_ground_truth_is_agreed_on_and_its_neighbours_are_not() -> None:
    assert says(CELL, "K-edge", "L0H0 → L1H0") == [True, True, True]
    assert says(CELL, "K-edge", "L0H1 → L1H0") == [False, False, False]
    assert says(CELL, "V-edge", "L0H0 → L1H0") == [False, None, False]
    assert says(CELL, "induction", "L1H0") == [True, True, True]
    assert says(CELL, "induction", "L1H1") == [False, False, False]
    assert says(CELL, "previous token", "L0H0") == [True, True, True]
    assert says(CELL, "copies", "L0H1") == [True, True, False]


def test_a_head_as_costly_as_its_control_is_not_needed() -> None:
    means = [a for a in CELL.rows(AblationRow) if (a.target, a.method) == ("head", "mean")]
    level = [dataclasses.replace(a, method="rotated") for a in means]
    rest = [a for a in CELL.rows(AblationRow) if a.method != "rotated"]
    assert says(CELL.having(ablations=rest + level), "induction", "L1H0") == [True, True, False]
    assert says(CELL.having(ablations=rest), "induction", "L1H0") == [True, True, None]


def test_where_no_induction_head_has_formed_weights_do_not_say_what_it_would_read() -> None:
    none = CELL.having(heads=[dataclasses.replace(h, prefix_matching=0.02) for h in CELL.rows(HeadRow)])
    assert says(none, "previous token", "L0H0") == [None, True, True]


def relabelled(**labelled: bool) -> Cell:
    """Give the heads of the first layer exactly these labels."""
    named = {name.replace("_", " "): says for name, says in labelled.items()}
    kept = [r for r in CELL.rows(LabelRow) if r.layer or r.behaviour not in ("offset", *named)]
    model = next(r for r in CELL.rows(LabelRow) if r.behaviour == "previous token")
    first = [dataclasses.replace(model, behaviour=name, labelled=says) for name, says in named.items()]
    return CELL.having(labels=kept + first)


def test_behaviour_of_the_early_head_decides_which_edges_carry_something() -> None:
    """A head that attends to itself or to the previous token serves queries; to the previous one or two, keys."""
    edge = "L0H0 → L1H0"
    assert says(CELL, "Q-edge", edge)[1] is True
    for labels, query, key in (
        ({"previous_token": True}, True, True),
        ({"previous_token": False, "two_tokens_back": True}, False, True),
        ({"previous_token": False, "two_tokens_back": False}, False, False),
    ):
        assert [says(relabelled(**labels), f"{kind}-edge", edge)[1] for kind in "QK"] == [query, key]


def test_what_was_not_measured_is_neither_yes_nor_no() -> None:
    items = facts(frames(CELL.having(labels=[], ablations=[], copying=[])))["items"]
    assert items[SAYS[1:]].isna().all(axis=None)
    assert not agreed(items).any()
    assert {row[i].text for row in counts({"items": items}).rows for i in (3, 6)} == {"–"}


def test_the_table_counts_and_names_the_ground_truth() -> None:
    items = facts(frames(CELL))["items"]
    rows = {row[0].text: [e.text for e in row[1:]] for row in counts({"items": items}).rows}
    assert list(rows) == ["copies", "induction", "previous token", "K-edge", "Q-edge", "V-edge"]
    assert rows["K-edge"] == ["2", *["1 of 9"] * 4, *["1.00 (1.00; 9)"] * 3]
    assert rows["V-edge"] == ["2", "0 of 9", "–", "0 of 9", "0 of 9", "–", "1.00 (–; 9)", "–"]
    assert rows["copies"][1:5] == ["6 of 6", "6 of 6", "2 of 6", "2 of 6"]
    assert "induction L1H0; previous token L0H0; K-edge L0H0 → L1H0" in named({"items": items}).rows[0][1].text
    assert len(evidence(frames(CELL))) == 6 + 3 + 3 + 27


def test_a_score_that_the_mean_write_alone_makes_is_no_composition_however_significant() -> None:
    planted = [e for e in CELL.rows(CompositionRow) if e.composes]
    assert len(planted) == 1
    e = planted[0]
    assert dataclasses.replace(e, varying=0.0).above
    for kind, varying, size, q, composes in (
        ("V", 0.0, 1.0, 0.01, False),
        ("V", 1.01, 0.55, 0.01, True),
        ("V", 1.01, 0.54, 0.01, False),
        ("V", 0.99, 2.0, 0.01, False),
        ("V", 1.01, 0.6, 0.1, False),
        ("K", 1.31, 0.43, 0.01, True),
        ("K", 1.29, 0.6, 0.01, False),
    ):
        changed = dataclasses.replace(e, kind=kind, varying=varying * e.chance, size=size, varying_q_value=q)
        assert changed.composes == composes


def test_edges_are_counted_by_kind_and_by_whether_they_compose() -> None:
    composing = {"value": 0.3, "varying": 0.3, "varying_q_value": 0.01}
    edges = replaced(
        CELL.rows(CompositionRow), lambda e: e.kind == "V" or e.late_head == 0 == e.early_head, **composing
    )
    cell = CELL.having(composition=edges)
    counted = (
        facts(frames(cell))["edges"].groupby(["question", "weights_says"])["intervention_says"].agg(["sum", "size"])
    )
    assert counted.reset_index().to_numpy().tolist() == [
        *(["K-edge", False, 0, 8], ["K-edge", True, 1, 1], ["Q-edge", False, 0, 8], ["Q-edge", True, 0, 1]),
        ["V-edge", True, 0, 9],
    ]


def test_copying_heads_that_repeats_do_not_need_have_their_effect_on_text() -> None:
    rows = replaced(CELL.rows(AblationRow), lambda a: a.target == "head", loss_nats=9.0)
    rows = replaced(rows, lambda a: (a.target, a.method) == ("head", "resample"), loss_nats=0.7)
    told = facts(frames(CELL.having(ablations=rows)))
    needed = told["copying_heads"]["intervention_says"]
    assert (needed.sum(), len(needed), len(told["other_heads"])) == (2, 6, 0)
    assert told["unneeded"]["text_nats"].tolist() == [0.7] * 4


def test_the_chapter_on_trust_counts_what_some_evidence_finds_and_what_all_three_find() -> None:
    rows = [
        (2, "copies", "L0H0", True, False, True),
        (2, "copies", "L1H0", True, True, True),
        (2, "copies", "L0H2", False, False, False),
        (2, "K-edge", "L0H1 → L1H0", False, True, True),
    ]
    evidence = pd.DataFrame(rows, columns=["n_layers", "question", "name", *SAYS])
    found = agreeing(evidence.astype(dict.fromkeys(SAYS, "boolean")))
    assert {q: rows["all_say"].tolist() for q, rows in found.items()} == {"copies": [False, True], "K-edge": [False]}
