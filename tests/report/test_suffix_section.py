"""The section on suffix matching, where heads match two tokens, where they do not, and without measurements."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from pathsum.claims.judging import NOT, REPRODUCED, UNTESTABLE
from pathsum.claims.registry import judge_all
from pathsum.records.paths import ContentScoreRow
from pathsum.records.results import Cell, Results
from pathsum.records.suffixes import CONTROLS_OF, Cut, SuffixCutRow
from pathsum.records.verdicts import ClaimResult
from pathsum.report.themes.suffixes import facts, section, suffixes
from pathsum.report.told import Frames
from tests.report import synthetic

WORKS, FAILS = synthetic.cell(2, 3, 0), synthetic.cell(2, 3, 1, works=False)


def only(*cells: Cell) -> Results:
    return dataclasses.replace(synthetic.results(), cells={c.name: c for c in cells})


def judged(cell: Cell) -> dict[str, ClaimResult]:
    return {c.id: c for c in judge_all(only(cell)) if c.id.startswith("two_token")}


def verdicts(cell: Cell) -> dict[str, str]:
    return {name: claim.verdict for name, claim in judged(cell).items()}


def changed(of: Callable[[SuffixCutRow], bool], **values: Any) -> Cell:
    rows = [dataclasses.replace(r, **values) if of(r) else r for r in WORKS.rows(SuffixCutRow)]
    return WORKS.having(suffix_cuts=rows)


def last_entries(cell: Cell, n: int) -> list[str]:
    (table,) = section(only(cell), {}).blocks
    return [entry.text for entry in table.rows[0][-n:]]  # type: ignore[union-attr]


def test_the_facts_are_those_of_the_records() -> None:
    found = facts(Frames(only(WORKS, FAILS).cells))
    assert (found["two"]["low"] > 0).tolist() == [True, False]
    assert found["two"]["longer"].tolist()[0] == 0.7
    assert (found["three"]["low"] > 0).tolist() == [False, False]
    left = {name: (models, rows["left"].tolist()) for name, models, rows in found["edges"]}
    assert left["from previous-token heads to the queries"] == (1, pytest.approx([0.05] * 2))
    assert left["from as many other heads to the keys"] == (1, [1.0] * 2)
    assert set(found["random"]["left"]) == {1.0}
    assert found["others"]["second_copy_nats"].max() == 0.8


def test_the_text_credits_edges_only_where_a_head_prefers_the_longer_match() -> None:
    _, behaviour, edges = section(only(WORKS), {}).paragraphs
    assert "the follower of the longer match in 1 of 1 model (95 % interval of the" in behaviour
    assert "Without the edges from previous-token heads to the queries (1 of 1 models), 0.05 of the advantage" in edges
    _, behaviour = section(only(FAILS), {}).paragraphs
    assert "No head is shown to match more than the current token." in behaviour
    assert verdicts(FAILS) == {"two_token_matching": NOT, "two_token_edges": NOT}


@pytest.mark.parametrize(
    "change",
    [
        {"left": 0.9, "left_low": 0.8, "left_high": 1.0},
        {"alone_left_low": 0.4},
        {"left": None, "left_low": None, "left_high": None},
    ],
)
def test_an_edge_without_which_the_advantage_stays_or_all_matching_goes_explains_nothing(
    change: dict[str, float | None],
) -> None:
    assert verdicts(WORKS) == dict.fromkeys(("two_token_matching", "two_token_edges"), REPRODUCED)
    found = verdicts(changed(lambda r: r.cut == Cut.KEY_EDGE, **change))
    assert found == {"two_token_matching": REPRODUCED, "two_token_edges": NOT}


@pytest.mark.parametrize("control", [control for some in CONTROLS_OF.values() for control in some])
def test_an_edge_whose_control_leaves_no_more_of_the_advantage_explains_nothing(control: Cut) -> None:
    found = judged(changed(lambda r: r.cut == control, spared_low=-0.01))["two_token_edges"]
    assert found.verdict == NOT
    assert found.notes["L2H3S0"] == "a control may leave no more of the advantage"
    assert found.unsure == ["L2H3S0"]


def test_one_of_four_rotations_that_leaves_no_more_is_enough_to_fail_and_is_the_one_drawn() -> None:
    def last(r: SuffixCutRow) -> bool:
        return (r.cut, r.method, r.rotation) == (Cut.KEY_RANDOM, "resample", 3)

    cell = changed(last, advantage=0.01, low=-0.04, high=0.06, spared_low=-0.01)
    assert verdicts(cell)["two_token_edges"] == NOT
    figure = suffixes(only(cell))
    assert figure is not None
    assert figure.data[figure.data["cut"] == Cut.KEY_RANDOM]["advantage"].tolist() == [0.01]


def test_a_model_without_enough_other_heads_is_judged_by_random_directions() -> None:
    rows = [r for r in WORKS.rows(SuffixCutRow) if r.cut not in (Cut.QUERY_OTHERS, Cut.KEY_OTHERS)]
    assert verdicts(WORKS.having(suffix_cuts=rows))["two_token_edges"] == REPRODUCED


def test_without_measurements_nothing_is_said_or_judged() -> None:
    cell = WORKS.having(suffix_cuts=[])
    assert section(only(cell), {}).blocks == ()
    assert suffixes(only(cell)) is None
    assert set(verdicts(cell).values()) == {UNTESTABLE}


def test_the_table_and_the_figure_show_the_ground_truth() -> None:
    (table,) = section(only(WORKS), {}).blocks
    assert [e.text for e in table.rows[0]][1:5] == ["L1H0", "0.70", "0.30", "0.40 [0.35, 0.45]"]  # type: ignore[union-attr]
    figure = suffixes(only(WORKS, FAILS))
    assert figure is not None
    assert len(figure.data) == 2 * (2 + 8)


def test_the_table_shows_which_contents_the_scores_compare() -> None:
    """Guards against showing in another section only whether scores match one token or two."""
    nats = {("0", "1"): 5.0, ("1", "2"): 3.0, ("2", "3+"): 2.0}
    rows = WORKS.rows(ContentScoreRow)
    rows = [dataclasses.replace(r, preference_nats=nats.get((r.query, r.key), 0.0)) for r in rows]
    assert last_entries(WORKS.having(content_scores=rows), 3) == ["0.50", "0.30", "0.20"]
    assert last_entries(WORKS.having(content_scores=[]), 3) == ["–"] * 3


def test_a_share_is_judged_with_the_error_of_its_denominator_and_marked_where_that_decides() -> None:
    """An upper end of 0.18 over an advantage of 0.4 ± 0.15 is not 0.45."""
    wide = {"left": 0.4, "left_low": 0.3, "left_high": 0.7, "advantage": 0.16, "high": 0.18}
    found = judged(changed(lambda r: r.cut == Cut.KEY_EDGE, **wide))["two_token_edges"]
    assert (found.verdict, found.value) == (NOT, 0.7)
    assert "In L2H3S0, a threshold lies within a 95 % interval" in found.detail
