"""The section on content: results by heads and by content side by side, and claims that are judged by content."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathsum.claims.judging import NOT, REPRODUCED, UNTESTABLE
from pathsum.claims.registry import judge_all
from pathsum.page.document import Table
from pathsum.records.content import ContentRow, ContentScoreRow
from pathsum.records.results import Cell, Results
from pathsum.records.score_paths import MatchingRow, ScorePathRow
from pathsum.records.terms import TermRow
from pathsum.report.themes.content import content_scores, section
from tests.report import synthetic

WORKS, FAILS = synthetic.cell(2, 3, 0), synthetic.cell(2, 3, 0, works=False)


def only(cell: Cell, **controls: Cell) -> Results:
    return replace(synthetic.results(), cells={cell.name: cell}, controls=controls)


def verdict(cell: Cell, claim: str) -> str:
    return next(c.verdict for c in judge_all(only(cell)) if c.id == claim)


def tables(results: Results) -> dict[str, list[list[str]]]:
    blocks = [block for block in section(results, {}).blocks if isinstance(block, Table)]
    return {block.name: [[entry.text for entry in row] for row in block.rows] for block in blocks}


def test_shares_by_heads_and_by_content_stand_side_by_side() -> None:
    """The made-up preference is 8 nats, from the direct query and the key of L0H0: the current and the previous
    token."""
    ((model, head, K, Q_and_K, current, two_back, whole),) = tables(only(WORKS))["content_claims"]
    assert (model, head) == ("L2H3S0", "L1H0")
    assert [float(x.replace("−", "-")) for x in (K, current)] == pytest.approx([1, 1], abs=0.02)
    assert [float(x.replace("−", "-")) for x in (Q_and_K, two_back)] == pytest.approx([0, 0], abs=0.02)
    assert float(whole) == pytest.approx(8, abs=0.2)
    assert [row[1:4] for row in tables(only(WORKS))["content_loss_reduction"]] == [
        ["0", "2.00", "2.00 [1.90, 2.10]"],
        ["1", "1.50", "1.50 [1.40, 1.60]"],
        ["2", "0.20", "0.20 [0.10, 0.30]"],
    ]


def test_the_small_embedding_control_stands_beside_the_grid_with_its_reason() -> None:
    small = replace(WORKS, summary=replace(WORKS.summary, cell="small_embedding"))
    results = only(
        WORKS, small_embedding=small, untrained=replace(small, summary=replace(small.summary, cell="untrained"))
    )
    assert {row[0] for row in tables(results)["balance"]} == {"L2H3S0", "small_embedding"}
    assert any(
        text.startswith("In small_embedding the embedding starts small") for text in section(results, {}).paragraphs
    )
    assert not any("starts small" in text for text in section(only(WORKS), {}).paragraphs)
    figure = content_scores(results)
    assert figure is not None
    assert set(figure.data["cell"]) == {"L2H3S0", "small_embedding", "untrained"}


def test_claims_on_what_is_read_follow_content_where_heads_say_otherwise() -> None:
    """By heads nothing is K-composition and virtual heads matter. By content everything is as in the paper.

    This is the case of a model with a small embedding.
    """
    mixed = WORKS.having(score_paths=FAILS.rows(ScorePathRow), terms=FAILS.rows(TermRow))
    for claim in ("induction_scores_k", "virtual_heads_little"):
        assert verdict(mixed, claim) == REPRODUCED
    opposite = WORKS.having(content_scores=FAILS.rows(ContentScoreRow), content=FAILS.rows(ContentRow))
    for claim in ("induction_scores_k", "virtual_heads_little"):
        assert verdict(opposite, claim) == NOT


def test_the_corner_is_judged_on_the_pair_that_carries_the_score() -> None:
    moved = [replace(row, positivity=0.1, query="L0H1") for row in WORKS.rows(MatchingRow)]
    assert verdict(WORKS, "induction_corner") == REPRODUCED
    assert verdict(WORKS.having(matching=moved), "induction_corner") == NOT
    assert verdict(WORKS.having(matching=[]), "induction_corner") == REPRODUCED  # on AMF's own pair
    ((_, _, queries, keys, _, on_it, on_amfs),) = tables(only(WORKS.having(matching=moved)))["matching_pairs"]
    assert (queries, keys, on_it, on_amfs) == ("L0H1", "L0H0", "0.10", "0.95")


@pytest.mark.parametrize("cell", [synthetic.cell(0, 0, 0), synthetic.cell(1, 3, 0), WORKS.having(content_scores=[])])
def test_without_such_scores_nothing_is_judged(cell: Cell) -> None:
    assert content_scores(only(cell)) is None
    assert verdict(cell, "induction_scores_k") == UNTESTABLE
    assert "content_claims" not in tables(only(cell))
