"""The sections on what scores match: by content, by one token or two, and by tokens that are alike."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pathsum.claims.content import CURRENT, PREVIOUS, pair_share, term_share
from pathsum.claims.judging import NOT, REPRODUCED, UNTESTABLE
from pathsum.claims.registry import judge_all
from pathsum.records.fuzzy_matching import FuzzyMatchingRow
from pathsum.records.paths import ContentRow, ContentScoreRow, MatchingRow, ScorePathRow, TermRow
from pathsum.records.results import Cell
from pathsum.records.suffixes import CONTROLS_OF, Cut, SuffixCutRow
from pathsum.records.verdicts import ClaimResult
from pathsum.report.themes import content, fuzzy_matching, repeated_names, suffixes
from tests.report import synthetic
from tests.report.synthetic import frames, only, texts

WORKS, FAILS = synthetic.cell(2, 3, 0), synthetic.cell(2, 3, 0, works=False)
OTHER = synthetic.cell(2, 3, 1, works=False)


def judged(cell: Cell) -> dict[str, ClaimResult]:
    return {c.id: c for c in judge_all(only(cell))}


def verdict(cell: Cell, claim: str) -> str:
    return judged(cell)[claim].verdict


# ---- content --------------------------------------------------------------------------------------------------------


def test_shares_by_heads_and_by_content_stand_side_by_side() -> None:
    """The made-up preference is 8 nats, from the direct query and the key of L0H0: the current and the previous
    token."""
    found = content.facts(frames(WORKS))
    (row,) = found["content_claims"].to_numpy().tolist()
    shares = [term_share(WORKS, "K"), term_share(WORKS, "Q&K"), pair_share(WORKS, CURRENT, PREVIOUS)]
    assert row[:2] == ["L2H3S0", "L1H0"]
    assert row[2:6] == pytest.approx([1, 0, 1, 0], abs=0.02)
    assert row[2:5] == pytest.approx(shares, abs=0.005)
    assert row[6] == pytest.approx(8, abs=0.2)
    assert found["content_loss_reduction"].iloc[:, :3].to_numpy()[:, 1:].tolist() == [[0, 2.0], [1, 1.5], [2, 0.2]]


def test_the_small_embedding_control_stands_beside_the_grid() -> None:
    small, untrained = (
        replace(WORKS, summary=replace(WORKS.summary, cell=name)) for name in ("small_embedding", "untrained")
    )
    found = content.facts(frames(WORKS, small))
    assert found["small"] == {"small_embedding": 0.5}
    assert list(found["grid"].index) == ["L2H3S0"]
    results = only(WORKS, small_embedding=small, untrained=untrained)
    assert {row[0] for row in texts(content.section(results, {}))[-1]} == {"L2H3S0", "small_embedding"}
    figure = content.content_scores(results)
    assert figure is not None
    assert set(figure.data["cell"]) == {"L2H3S0", "small_embedding", "untrained"}


def test_claims_on_what_is_read_follow_content_where_heads_say_otherwise() -> None:
    """By heads nothing is K-composition and virtual heads matter. By content everything is as in the paper.

    This is the case of a model with a small embedding.
    """
    mixed = WORKS.having(score_paths=FAILS.rows(ScorePathRow), terms=FAILS.rows(TermRow))
    opposite = WORKS.having(content_scores=FAILS.rows(ContentScoreRow), content=FAILS.rows(ContentRow))
    for claim in ("induction_scores_k", "virtual_heads_little"):
        assert (verdict(mixed, claim), verdict(opposite, claim)) == (REPRODUCED, NOT)


def test_the_corner_is_judged_on_the_pair_that_carries_the_score() -> None:
    moved = [replace(row, positivity=0.1, query="L0H1") for row in WORKS.rows(MatchingRow)]
    assert verdict(WORKS, "induction_corner") == REPRODUCED
    assert verdict(WORKS.having(matching=moved), "induction_corner") == NOT
    assert verdict(WORKS.having(matching=[]), "induction_corner") == REPRODUCED  # on AMF's own pair
    (row,) = content.facts(frames(WORKS.having(matching=moved)))["matching_pairs"].to_numpy().tolist()
    assert row[2:] == ["L0H1", "L0H0", 0.88, 0.1, 0.95]


@pytest.mark.parametrize("cell", [synthetic.cell(0, 0, 0), synthetic.cell(1, 3, 0), WORKS.having(content_scores=[])])
def test_without_such_scores_nothing_is_judged(cell: Cell) -> None:
    assert content.content_scores(only(cell)) is None
    assert verdict(cell, "induction_scores_k") == UNTESTABLE
    assert "content_claims" not in content.facts(frames(cell))


# ---- one token or two -----------------------------------------------------------------------------------------------


def changed(of: Callable[[SuffixCutRow], bool], **values: Any) -> Cell:
    rows = [replace(r, **values) if of(r) else r for r in WORKS.rows(SuffixCutRow)]
    return WORKS.having(suffix_cuts=rows)


def test_the_facts_on_suffixes_are_those_of_the_records() -> None:
    found = suffixes.facts(frames(WORKS, OTHER))
    assert (found["two"]["low"] > 0).tolist() == [True, False]
    assert found["two"]["longer"].tolist()[0] == 0.7
    assert (found["three"]["low"] > 0).tolist() == [False, False]
    left = {name: (models, rows["left"].tolist()) for name, models, rows in found["edges"]}
    assert left["from previous-token heads to the queries"] == (1, pytest.approx([0.05] * 2))
    assert left["from as many other heads to the keys"] == (1, [1.0] * 2)
    assert set(found["random"]["left"]) == {1.0}
    assert found["others"]["second_copy_nats"].max() == 0.8


def test_edges_are_credited_only_where_a_head_prefers_the_longer_match() -> None:
    assert [len(suffixes.section(only(cell), {}).paragraphs) for cell in (WORKS, OTHER)] == [3, 2]
    assert (verdict(OTHER, "two_token_matching"), verdict(OTHER, "two_token_edges")) == (NOT, NOT)
    assert (verdict(WORKS, "two_token_matching"), verdict(WORKS, "two_token_edges")) == (REPRODUCED, REPRODUCED)
    none = WORKS.having(suffix_cuts=[])
    assert (verdict(none, "two_token_matching"), verdict(none, "two_token_edges")) == (UNTESTABLE, UNTESTABLE)
    assert suffixes.suffixes(only(none)) is None


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
    cell = changed(lambda r: r.cut == Cut.KEY_EDGE, **change)
    assert (verdict(cell, "two_token_matching"), verdict(cell, "two_token_edges")) == (REPRODUCED, NOT)


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
    assert verdict(cell, "two_token_edges") == NOT
    figure = suffixes.suffixes(only(cell))
    assert figure is not None
    assert figure.data[figure.data["cut"] == Cut.KEY_RANDOM]["advantage"].tolist() == [0.01]


def test_a_model_without_enough_other_heads_is_judged_by_random_directions() -> None:
    rows = [r for r in WORKS.rows(SuffixCutRow) if r.cut not in (Cut.QUERY_OTHERS, Cut.KEY_OTHERS)]
    assert verdict(WORKS.having(suffix_cuts=rows), "two_token_edges") == REPRODUCED


def test_the_table_shows_which_contents_the_scores_compare() -> None:
    """Guards against showing in another section only whether scores match one token or two."""
    nats = {("0", "1"): 5.0, ("1", "2"): 3.0, ("2", "3+"): 2.0}
    rows = [replace(r, preference_nats=nats.get((r.query, r.key), 0.0)) for r in WORKS.rows(ContentScoreRow)]
    ((row,),) = texts(suffixes.section(only(WORKS.having(content_scores=rows)), {}))
    assert row[1:5] == ["L1H0", "0.70", "0.30", "0.40 [0.35, 0.45]"]
    assert row[-3:] == ["0.50", "0.30", "0.20"]


def test_a_share_is_judged_with_the_error_of_its_denominator_and_marked_where_that_decides() -> None:
    """An upper end of 0.18 over an advantage of 0.4 ± 0.15 is not 0.45."""
    wide = {"left": 0.4, "left_low": 0.3, "left_high": 0.7, "advantage": 0.16, "high": 0.18}
    found = judged(changed(lambda r: r.cut == Cut.KEY_EDGE, **wide))["two_token_edges"]
    assert (found.verdict, found.value) == (NOT, 0.7)
    assert "In L2H3S0, a threshold lies within a 95 % interval" in found.detail


# ---- tokens that are alike ------------------------------------------------------------------------------------------


def signs(*cells: Cell) -> list[tuple[int, int]]:
    """Return how many intervals lie above and below 0: of both variants, and of kept and of new tokens after a
    renaming."""
    found = fuzzy_matching.facts(frames(*cells))
    rows = [of["attention"] for _, of, _ in found["variants"]] + [found["over_shuffled"][m] for m in ("after", "new")]
    return [(int((r["low"] > 0).sum()), int((r["high"] < 0).sum())) for r in rows]


def test_a_match_is_told_with_its_size_beside_an_equal_token_s() -> None:
    found = fuzzy_matching.facts(frames(WORKS))
    assert [kind for kind, *_ in found["variants"]] == ["case", "leading space"]
    for _, *both in found["variants"]:
        sizes = [of[name]["value"].item() for of in both for name in ("attention", "nats", "score")]
        assert sizes == pytest.approx([0.3, 1.2, 2.1, 0.6, 2.4, 4.2])
    over = [found[name][m]["value"].item() for m in ("after", "new") for name in ("over_shuffled", "over_another")]
    assert over == pytest.approx([0.2, 0.3, -1.2, -1.8])
    ((row, *_),) = texts(fuzzy_matching.section(only(WORKS), {}))
    assert row[1:4] == ["L1H0", "0.60 [0.55, 0.65]", "0.30 [0.25, 0.35]"]


def test_an_interval_that_reaches_0_counts_for_neither_side() -> None:
    assert signs(WORKS) == [(1, 0), (1, 0), (1, 0), (0, 1)]
    assert signs(OTHER) == [(0, 0)] * 4
    assert signs(WORKS, OTHER) == signs(WORKS)
    below = [replace(r, value=-1.0, low=-1.1, high=-0.9) for r in OTHER.rows(FuzzyMatchingRow)]
    assert signs(OTHER.having(fuzzy_matching=below)) == [(0, 1)] * 4


def test_what_was_not_measured_is_not_told() -> None:
    gains, matches = ([r for r in WORKS.rows(FuzzyMatchingRow) if (r.layer is None) == gain] for gain in (True, False))
    method, *_ = fuzzy_matching.section(only(WORKS.having(fuzzy_matching=gains)), {}).paragraphs
    assert method.endswith("This vocabulary has too few such tokens to test.")
    assert len(fuzzy_matching.section(only(WORKS.having(fuzzy_matching=matches)), {}).paragraphs) == 2
    assert fuzzy_matching.facts(frames(WORKS.having(fuzzy_matching=[]))) == {}
    assert fuzzy_matching.fuzzy_matching(only(synthetic.cell(1, 3, 0))) is None


# ---- repeated names -------------------------------------------------------------------------------------------------


def test_names_that_repeat_stand_above_all_names_and_the_control() -> None:
    section = repeated_names.section(only(WORKS, OTHER, synthetic.cell(1, 3, 0)), {})
    assert "costs 0.00 to 2.00 nats per token with zero ablation and 0.25 to 2.25" in section.paragraphs[1]
    assert "(range over models: 2). The control" in section.paragraphs[1]
    (table,) = texts(section)
    assert [row[2] for row in table] == ["zero"] * 4 + ["resample"] * 2
    assert table[0][:2] == ["L2H3S0", "D|urs|ley"]
    assert [row[-4:] for row in table[2:4]] == [
        ["3.50", "0.50", "2.50", "2.00 [1.90, 2.10]"],
        ["3.50", "–", "0.50", "0.00 [−0.10, 0.10]"],
    ]
    assert repeated_names.facts(only(synthetic.cell(1, 3, 0))) == {}
