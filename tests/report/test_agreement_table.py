"""Three kinds of evidence are compared as they are in the records, each with its own threshold."""

from __future__ import annotations

import dataclasses

import pytest

from pathsum.page.document import Table
from pathsum.records.ablations import AblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import HeadRow, LabelRow
from pathsum.records.results import Cell, Results
from pathsum.report import agreement as agreed
from pathsum.report.agreement import Judged, agreement, judged, table
from pathsum.report.chapters import trust
from pathsum.report.themes.agreement import section
from tests.report import synthetic

CELL = synthetic.cell(2, 3, 0)


def only(cell: Cell) -> Results:
    return dataclasses.replace(synthetic.results(layers=()), cells={cell.name: cell})


def find(cell: Cell, question: str, name: str) -> Judged:
    return next(i for i in judged(cell) if (i.question, i.name) == (question, name))


def says(item: Judged) -> list[bool | None]:
    return [None if e is None else e.says for e in (item.weights, item.behaviour, item.intervention)]


@pytest.mark.parametrize(
    ("answers", "share", "kappa"),
    [
        ([(True, True), (False, False)], 1.0, 1.0),
        ([(True, False), (False, True)], 0.0, -1.0),
        ([(a, b) for a in (True, False) for b in (True, False)], 0.5, 0.0),
        ([(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15, 0.7, 0.4),
    ],
)
def test_kappa_is_the_excess_over_what_the_counts_alone_would_give(
    answers: list[tuple[bool, bool]], share: float, kappa: float
) -> None:
    found = agreement(answers)
    assert found is not None
    assert (found.n, found.share, found.kappa) == (len(answers), pytest.approx(share), pytest.approx(kappa))


def test_two_that_give_one_answer_for_all_have_no_kappa() -> None:
    found = agreement([(False, False)] * 7)
    assert found is not None
    assert (found.share, found.kappa) == (1.0, None)
    always = agreement([(True, False), (False, False)])
    assert always is not None
    assert always.kappa == 0.0
    assert agreement([]) is None


def test_the_ground_truth_is_agreed_on_and_its_neighbours_are_not() -> None:
    assert says(find(CELL, "K-edge", "L0H0 → L1H0")) == [True, True, True]
    assert says(find(CELL, "K-edge", "L0H1 → L1H0")) == [False, False, False]
    assert says(find(CELL, "V-edge", "L0H0 → L1H0")) == [False, None, False]
    assert says(find(CELL, "induction", "L1H0")) == [True, True, True]
    assert says(find(CELL, "induction", "L1H1")) == [False, False, False]
    assert says(find(CELL, "previous token", "L0H0")) == [True, True, True]
    assert says(find(CELL, "copies", "L0H1")) == [True, True, False]


def test_a_head_as_costly_as_its_control_is_not_needed() -> None:
    means = [a for a in CELL.rows(AblationRow) if (a.target, a.method) == ("head", "mean")]
    level = [dataclasses.replace(a, method="rotated") for a in means]
    rest = [a for a in CELL.rows(AblationRow) if a.method != "rotated"]
    assert says(find(CELL.having(ablations=rest + level), "induction", "L1H0")) == [True, True, False]
    assert says(find(CELL.having(ablations=rest), "induction", "L1H0")) == [True, True, None]


def test_a_composition_score_below_chance_is_no_claim_however_significant() -> None:
    at = {"value": 0.1, "varying": 0.1, "q_value": 0.001, "varying_q_value": 1.0}
    below = [dataclasses.replace(e, **at) for e in CELL.rows(CompositionRow)]
    items = judged(CELL.having(composition=below))
    assert {says(i)[0] for i in items if i.question.endswith("edge")} == {False}


def test_where_no_induction_head_has_formed_weights_do_not_say_what_it_would_read() -> None:
    none = CELL.having(heads=[dataclasses.replace(h, prefix_matching=0.02) for h in CELL.rows(HeadRow)])
    assert says(find(none, "previous token", "L0H0")) == [None, True, True]


def relabelled(**labelled: bool) -> Cell:
    """Give the heads of the first layer exactly these labels."""
    named = {name.replace("_", " "): says for name, says in labelled.items()}
    kept = [r for r in CELL.rows(LabelRow) if r.layer or r.behaviour not in ("offset", *named)]
    model = next(r for r in CELL.rows(LabelRow) if r.behaviour == "previous token")
    first = [dataclasses.replace(model, behaviour=name, labelled=says) for name, says in named.items()]
    return CELL.having(labels=kept + first)


def test_a_q_edge_must_come_from_a_head_that_looks_at_itself_or_at_the_previous_token() -> None:
    edge = "L0H0 → L1H0"
    assert says(find(CELL, "Q-edge", edge))[1] is True
    assert says(find(relabelled(previous_token=True), "Q-edge", edge))[1] is True
    assert says(find(relabelled(previous_token=False, two_tokens_back=True), "Q-edge", edge))[1] is False


def test_a_k_edge_may_come_from_a_head_that_looks_two_back() -> None:
    edge = "L0H0 → L1H0"
    assert says(find(relabelled(previous_token=False, two_tokens_back=True), "K-edge", edge))[1] is True
    assert says(find(relabelled(previous_token=False, two_tokens_back=False), "K-edge", edge))[1] is False


def test_what_was_not_measured_is_neither_yes_nor_no() -> None:
    bare = CELL.having(labels=[], ablations=[], copying=[])
    assert {tuple(says(i)[1:]) for i in judged(bare)} == {(None, None)}
    assert not any(i.agreed for i in judged(bare))
    counts, named = section(only(bare), {}).blocks
    assert isinstance(counts, Table)
    assert isinstance(named, Table)
    assert {row[3].text for row in counts.rows} == {row[6].text for row in counts.rows} == {"–"}
    assert [e.text for e in named.rows[0]] == [CELL.name, "none", "none", "none"]


def test_the_table_counts_and_names_the_ground_truth() -> None:
    counts, named = section(only(CELL), {}).blocks
    assert isinstance(counts, Table)
    assert isinstance(named, Table)
    rows = {row[0].text: [e.text for e in row[1:]] for row in counts.rows}
    assert list(rows) == ["copies", "induction", "previous token", "K-edge", "Q-edge", "V-edge"]
    assert rows["K-edge"] == ["2", *["1 of 9"] * 4, *["1.00 (1.00; 9)"] * 3]
    assert rows["V-edge"] == ["2", "0 of 9", "–", "0 of 9", "0 of 9", "–", "1.00 (–; 9)", "–"]
    assert rows["copies"][1:5] == ["6 of 6", "6 of 6", "2 of 6", "2 of 6"]
    assert "induction L1H0; previous token L0H0; K-edge L0H0 → L1H0" in named.rows[0][1].text


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


def test_edges_are_stated_by_kind_and_a_kind_is_confirmed_where_most_of_it_is_needed() -> None:
    claimed = [
        dataclasses.replace(e, value=0.3, varying=0.3, varying_q_value=0.01)
        if e.kind == "V" or e.late_head == 0 == e.early_head
        else e
        for e in CELL.rows(CompositionRow)
    ]
    found = section(only(CELL.having(composition=claimed)), {})
    (told,) = [p for p in found.paragraphs if p.startswith("Prediction of the second copy") and "edge" in p]
    assert told.startswith(
        "Prediction of the second copy needs 1 of 1 K-edge that composes and 0 of 8 that do not; 0 of 1 Q-edge that "
        "composes and 0 of 8 that do not; 0 of 9 V-edges that compose and 0 of 0 that do not. Of the edges "
        "that compose, intervention confirms most of the K-edges, and none of the Q-edges and V-edges. A composition"
    )


@pytest.mark.parametrize(("composing", "said"), [(1, "most of the K-edges."), (2, "at most half of the K-edges.")])
def test_half_of_the_edges_is_not_most_of_them(composing: int, said: str) -> None:
    """The first K-edge is needed, the others are not."""
    edges = [e for e in CELL.rows(CompositionRow) if e.kind == "K"]
    first = [e for e in edges if e.late_head == 0 == e.early_head] + [e for e in edges if e.late_head or e.early_head]
    claimed = [dataclasses.replace(e, value=0.3, varying=0.3, varying_q_value=0.01) for e in first[:composing]]
    others = [dataclasses.replace(e, varying=0.0, varying_q_value=0.9) for e in first[composing:]]
    found = section(only(CELL.having(composition=claimed + others)), {})
    (told,) = [p for p in found.paragraphs if p.startswith("Prediction of the second copy") and "edge" in p]
    assert f"Of the edges that compose, intervention confirms {said}" in told
    assert ("A composition score can also be high" in told) == (composing == 2)


def test_copying_heads_that_repeats_do_not_need_are_stated_by_what_they_are_worth_on_text() -> None:
    text = {"zero": 9.0, "mean": 9.0, "resample": 0.7, "rotated": 9.0}
    costly = [
        dataclasses.replace(a, loss_nats=text[a.method]) if a.target == "head" else a for a in CELL.rows(AblationRow)
    ]
    (told,) = [p for p in section(only(CELL.having(ablations=costly)), {}).paragraphs if "that copy by" in p]
    assert told.startswith(
        "Prediction of the second copy needs 2 of 6 heads that copy by their weights and 0 of 0 that do not. "
    )
    assert "Ablation of one of the 4 heads that copy by their weights but are not needed" in told
    assert "the held-out loss by 0.70 nats" in told


def test_the_widest_disagreements_are_named() -> None:
    costly = [
        dataclasses.replace(a, second_copy_nats=3.0, second_copy_low=2.5)
        if (a.kind, a.method, a.early_head, a.head) == ("V", "resample", 1, 2)
        else a
        for a in CELL.rows(AblationRow)
    ]
    claimed = [
        dataclasses.replace(e, value=0.9, varying=0.9, varying_q_value=0.01)
        if (e.kind, e.early_head, e.late_head) == ("Q", 2, 1)
        else e
        for e in CELL.rows(CompositionRow)
    ]
    named = section(only(CELL.having(ablations=costly, composition=claimed)), {}).blocks[1]
    assert isinstance(named, Table)
    assert named.rows[0][2].text.startswith("Q-edge L0H2 → L1H1: weights 0.90 (chance 0.18), rise of the loss 0.")
    assert named.rows[0][3].text.startswith("V-edge L0H1 → L1H2: weights 0.")
    assert named.rows[0][3].text.endswith("rise of the loss 3.00 nats")


def test_without_heads_there_is_nothing_to_compare() -> None:
    found = section(synthetic.results(layers=(0,)), {})
    assert (found.paragraphs, found.blocks) == (("This sweep has no heads.",), ())
    assert table(synthetic.results(layers=(0,))).empty


def test_one_layer_is_asked_whether_its_heads_copy_and_nothing_else() -> None:
    found = section(synthetic.results(layers=(1,), seeds=(0,)), {})
    assert [row[0].text for row in found.blocks[0].rows] == ["copies"]  # type: ignore[union-attr]
    assert not any("that compose" in p for p in found.paragraphs)


def test_the_csv_has_every_head_and_edge_with_its_numbers() -> None:
    rows = table(only(CELL))
    assert len(rows) == 6 + 3 + 3 + 27
    planted = rows[(rows["question"] == "K-edge") & (rows["name"] == "L0H0 → L1H0")].iloc[0]
    assert (planted["weights_value"], planted["weights_bar"], planted["intervention_bar"]) == (0.45, 0.18, 0.1)


def test_the_chapter_on_trust_counts_heads_and_edges_by_evidence() -> None:
    def item(n_layers: int, question: str, name: str, *says: bool) -> agreed.Judged:
        evidence = [agreed.Evidence(yes, float(yes), None, 0.5) for yes in says]
        return agreed.Judged("model", n_layers, question, name, evidence[0], evidence[1], evidence[2], None)

    items = [
        item(2, agreed.COPIES, "L0H0", True, False, True),
        item(2, agreed.COPIES, "L1H0", True, True, True),
        item(1, agreed.COPIES, "L0H1", True, False, False),
        item(2, agreed.COPIES, "L0H2", False, False, False),
        item(2, "K-edge", "L0H0 → L1H0", True, True, True),
        item(2, "K-edge", "L0H1 → L1H0", False, True, True),
        item(2, "K-edge", "L0H2 → L1H0", True, True, False),
    ]
    assert trust.copying_text(items) == (
        " Of the 3 copying heads, 3 copy by weights and 1 by behavior. For 2, resample ablation significantly raises "
        "the loss on the second copy (1 of these in the first layer of deeper models, where heads can matter without "
        "copying)."
    )
    assert (
        trust.composing_text(items)
        == " Of the edges that the second copy needs, composition scores find 1 of 2 key edges."
    )
