"""The section on the pairs of paths in attention scores."""

from __future__ import annotations

import dataclasses

import pytest

from pathsum.claims.content import term
from pathsum.records.paths import ScorePathRow
from pathsum.records.results import Results
from pathsum.report.themes.score_paths import facts, score_paths, section
from pathsum.report.told import Frames
from tests.report import synthetic


@pytest.mark.parametrize(
    ("query", "key", "expected"),
    [
        ("direct", "direct", "direct"),
        ("L0H1", "direct", "Q"),
        ("direct", "L0H1", "K"),
        ("L0H1 L1H0", "L0H1", "Q&K"),
        ("position", "L0H1", "position"),
        ("direct", "position", "position"),
    ],
)
def test_a_pair_is_named_by_the_sides_that_read_an_earlier_head(query: str, key: str, expected: str) -> None:
    assert term(ScorePathRow(1, 0, query, key, 0.0, 0.0, 0.0, 0.0)) == expected


def only(n_layers: int, **changes: object) -> Results:
    cell = synthetic.cell(n_layers, 3, 0).having(**changes)
    return dataclasses.replace(synthetic.results(), cells={cell.name: cell})


def test_the_facts_are_the_ground_truth() -> None:
    results = only(2)
    found = facts(Frames(results.cells))
    assert found["through"].tolist() == pytest.approx([8], abs=0.1)  # planted, with a little noise
    assert found["strongest"].index.tolist() == [("L2H3S0", "direct")]
    (table,) = section(results, {}).blocks
    ((_, head, _, _, K, *_),) = [[e.text for e in row] for row in table.rows]  # type: ignore[union-attr]
    assert head == "L1H0"
    assert float(K[:3]) == pytest.approx(8, abs=0.3)


@pytest.mark.parametrize("results", [only(0), only(1), only(2, score_paths=[])])
def test_without_such_scores_nothing_is_shown(results: Results) -> None:
    assert facts(Frames(results.cells)) == {}
    assert section(results, {}).blocks == ()
    assert score_paths(results) is None
