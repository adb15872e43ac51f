"""The section on content: results by heads and by content side by side, and claims that are judged by content."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pathsum.claims.content import CURRENT, PREVIOUS, pair_share, term_share
from pathsum.claims.judging import NOT, REPRODUCED, UNTESTABLE
from pathsum.claims.registry import judge_all
from pathsum.records.paths import ContentRow, ContentScoreRow, MatchingRow, ScorePathRow, TermRow
from pathsum.records.results import Cell
from pathsum.report.themes.content import content_scores, facts, section
from pathsum.report.told import Frames
from tests.report import synthetic
from tests.report.synthetic import only

WORKS, FAILS = synthetic.cell(2, 3, 0), synthetic.cell(2, 3, 0, works=False)


def verdict(cell: Cell, claim: str) -> str:
    return next(c.verdict for c in judge_all(only(cell)) if c.id == claim)


def found(*cells: Cell) -> dict[str, Any]:
    return facts(Frames({cell.name: cell for cell in cells}))


def test_shares_by_heads_and_by_content_stand_side_by_side() -> None:
    """The made-up preference is 8 nats, from the direct query and the key of L0H0: the current and the previous
    token."""
    (row,) = found(WORKS)["content_claims"].to_numpy().tolist()
    judged = [term_share(WORKS, "K"), term_share(WORKS, "Q&K"), pair_share(WORKS, CURRENT, PREVIOUS)]
    assert row[:2] == ["L2H3S0", "L1H0"]
    assert row[2:6] == pytest.approx([1, 0, 1, 0], abs=0.02)
    assert row[2:5] == pytest.approx(judged, abs=0.005)
    assert row[6] == pytest.approx(8, abs=0.2)
    assert found(WORKS)["content_loss_reduction"].iloc[:, 1:4].to_numpy().tolist() == [
        [0, 2.0, "2.00 [1.90, 2.10]"],
        [1, 1.5, "1.50 [1.40, 1.60]"],
        [2, 0.2, "0.20 [0.10, 0.30]"],
    ]


def test_the_small_embedding_control_stands_beside_the_grid() -> None:
    small, untrained = (
        replace(WORKS, summary=replace(WORKS.summary, cell=name)) for name in ("small_embedding", "untrained")
    )
    results = only(WORKS, small_embedding=small, untrained=untrained)
    assert found(WORKS, small)["small"] == {"small_embedding": 0.5}
    assert list(found(WORKS, small)["grid"].index) == ["L2H3S0"]
    shown = section(results, {})
    assert "in the control small_embedding, whose embedding starts small, 0.50" in shown.paragraphs[1]
    assert "control" not in section(only(WORKS), {}).paragraphs[1]
    balance = shown.blocks[-1]
    assert {row[0].text for row in balance.rows} == {"L2H3S0", "small_embedding"}  # type: ignore[union-attr]
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
    (row,) = found(WORKS.having(matching=moved))["matching_pairs"].to_numpy().tolist()
    assert row[2:] == ["L0H1", "L0H0", 0.88, 0.1, 0.95]


@pytest.mark.parametrize("cell", [synthetic.cell(0, 0, 0), synthetic.cell(1, 3, 0), WORKS.having(content_scores=[])])
def test_without_such_scores_nothing_is_judged(cell: Cell) -> None:
    assert content_scores(only(cell)) is None
    assert verdict(cell, "induction_scores_k") == UNTESTABLE
    assert "content_claims" not in found(cell)
    assert "content_claims" not in {block.name for block in section(only(cell), {}).blocks}
