"""The section on suffix matching, where heads match two tokens, where they do not, and without measurements."""

from __future__ import annotations

import dataclasses

import pytest

from pathsum.claims.judging import NOT, REPRODUCED, UNTESTABLE
from pathsum.claims.registry import judge_all
from pathsum.records.paths import ContentScoreRow
from pathsum.records.results import Cell, Results
from pathsum.records.suffixes import CONTROLS_OF, Cut, SuffixCutRow
from pathsum.report.themes.suffixes import facts, section, suffixes
from pathsum.report.told import Frames
from tests.report import synthetic


def only(*cells: Cell) -> Results:
    return dataclasses.replace(synthetic.results(), cells={c.name: c for c in cells})


def verdicts(results: Results) -> dict[str, str]:
    return {c.id: c.verdict for c in judge_all(results) if c.id.startswith("two_token")}


WORKS, FAILS = synthetic.cell(2, 3, 0), synthetic.cell(2, 3, 1, works=False)


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


def test_the_text_quotes_the_facts() -> None:
    method, behaviour, edges, others = section(only(WORKS), {}).paragraphs
    assert "these sequences were not used to choose it" in method
    assert "prefers the longer match in 1 of 1 model (95 % interval of the difference" in behaviour
    assert "Without the edges from previous-token heads to the queries (1 of 1 models), 0.05 of the advantage" in edges
    assert "raises the loss on the second copy by 0.80 nats per token" in others


def test_where_no_head_prefers_the_longer_match_the_text_says_so_and_no_edge_is_credited() -> None:
    _, behaviour = section(only(FAILS), {}).paragraphs
    assert "No head is shown to match more than the current token." in behaviour
    assert verdicts(only(FAILS)) == {"two_token_matching": NOT, "two_token_edges": NOT}


def test_the_advantage_is_told_by_the_number_of_heads() -> None:
    def of(n_heads: int, advantage: float) -> Cell:
        cell = synthetic.cell(2, n_heads, 0)
        return cell.having(suffix_cuts=[dataclasses.replace(r, advantage=advantage) for r in cell.rows(SuffixCutRow)])

    assert facts(Frames(only(of(2, 0.2), of(4, 0.4)).cells))["by_heads"] == {2: 0.2, 4: 0.4}
    told = section(only(of(2, 0.2), of(4, 0.4)), {}).paragraphs[-1]
    assert told.endswith("by number of heads per layer, without ablation: 0.20 with 2 heads, 0.40 with 4 heads.")
    assert "of heads per layer" not in section(only(of(2, 0.2)), {}).paragraphs[-1]


@pytest.mark.parametrize("change", [{"left": 0.9, "left_low": 0.8, "left_high": 1.0}, {"alone_left_low": 0.4}])
def test_an_edge_without_which_the_advantage_stays_or_all_matching_goes_explains_nothing(
    change: dict[str, float],
) -> None:
    rows = [dataclasses.replace(r, **change) if r.cut == Cut.KEY_EDGE else r for r in WORKS.rows(SuffixCutRow)]
    assert verdicts(only(WORKS)) == dict.fromkeys(("two_token_matching", "two_token_edges"), REPRODUCED)
    found = verdicts(only(WORKS.having(suffix_cuts=rows)))
    assert found == {"two_token_matching": REPRODUCED, "two_token_edges": NOT}


@pytest.mark.parametrize("control", [control for some in CONTROLS_OF.values() for control in some])
def test_an_edge_whose_control_leaves_no_more_of_the_advantage_explains_nothing(control: Cut) -> None:
    rows = [dataclasses.replace(r, spared_low=-0.01) if r.cut == control else r for r in WORKS.rows(SuffixCutRow)]
    (found,) = [c for c in judge_all(only(WORKS.having(suffix_cuts=rows))) if c.id == "two_token_edges"]
    assert found.verdict == NOT
    assert found.notes["L2H3S0"] == "a control may leave no more of the advantage"
    assert found.unsure == ["L2H3S0"]


def test_one_of_four_rotations_that_leaves_no_more_is_enough_to_fail_and_is_the_one_drawn() -> None:
    def worse(r: SuffixCutRow) -> SuffixCutRow:
        last = (r.cut, r.method, r.rotation) == (Cut.KEY_RANDOM, "resample", 3)
        return dataclasses.replace(r, advantage=0.01, low=-0.04, high=0.06, spared_low=-0.01) if last else r

    cell = WORKS.having(suffix_cuts=[worse(r) for r in WORKS.rows(SuffixCutRow)])
    assert verdicts(only(cell))["two_token_edges"] == NOT
    figure = suffixes(only(cell))
    assert figure is not None
    assert figure.data[figure.data["cut"] == Cut.KEY_RANDOM]["advantage"].tolist() == [0.01]


def test_a_model_without_enough_other_heads_is_judged_by_random_directions() -> None:
    rows = [r for r in WORKS.rows(SuffixCutRow) if r.cut not in (Cut.QUERY_OTHERS, Cut.KEY_OTHERS)]
    assert verdicts(only(WORKS.having(suffix_cuts=rows)))["two_token_edges"] == REPRODUCED


def test_without_measurements_nothing_is_said_or_judged() -> None:
    results = only(WORKS.having(suffix_cuts=[]))
    assert section(results, {}).paragraphs == ("No model of this sweep has what this section shows.",)
    assert suffixes(results) is None
    assert set(verdicts(results).values()) == {UNTESTABLE}


def test_the_table_and_the_figure_show_the_ground_truth() -> None:
    (table,) = section(only(WORKS), {}).blocks
    assert [e.text for e in table.rows[0]][1:5] == ["L1H0", "0.70", "0.30", "0.40 [0.35, 0.45]"]  # type: ignore[union-attr]
    figure = suffixes(only(WORKS, FAILS))
    assert figure is not None
    assert len(figure.data) == 2 * (2 + 8)


def test_the_table_shows_which_contents_the_scores_compare() -> None:
    """Guards against showing in another section only whether scores match one token or two."""
    rows = [
        dataclasses.replace(
            r, preference_nats={("0", "1"): 5.0, ("1", "2"): 3.0, ("2", "3+"): 2.0}.get((r.query, r.key), 0.0)
        )
        for r in WORKS.rows(ContentScoreRow)
    ]
    (table,) = section(only(WORKS.having(content_scores=rows)), {}).blocks
    assert table.columns[-3:] == (
        "score: current × previous", "score: previous × two back", "score: two back × three or more back"
    )  # fmt: skip
    assert [entry.text for entry in table.rows[0][-3:]] == ["0.50", "0.30", "0.20"]
    (table,) = section(only(WORKS.having(content_scores=[])), {}).blocks
    assert [entry.text for entry in table.rows[0][-3:]] == ["–"] * 3


def test_a_share_is_judged_with_the_error_of_its_denominator_and_marked_where_that_decides() -> None:
    """Guards against ignoring the error of the denominator: an upper end of 0.18 over an advantage of 0.4 ± 0.15 is not
    0.45."""
    wide = {"left": 0.4, "left_low": 0.3, "left_high": 0.7, "advantage": 0.16, "high": 0.18}
    rows = [dataclasses.replace(r, **wide) if r.cut == Cut.KEY_EDGE else r for r in WORKS.rows(SuffixCutRow)]
    (found,) = [c for c in judge_all(only(WORKS.having(suffix_cuts=rows))) if c.id == "two_token_edges"]
    assert (found.verdict, found.value) == (NOT, 0.7)
    assert "In L2H3S0, a threshold lies within a 95 % interval" in found.detail
    none = [dataclasses.replace(r, left=None, left_low=None, left_high=None) for r in WORKS.rows(SuffixCutRow)]
    assert verdicts(only(WORKS.having(suffix_cuts=none)))["two_token_edges"] == NOT
