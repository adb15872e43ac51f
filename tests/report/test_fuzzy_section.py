"""The section on fuzzy matching, where heads match alike tokens, where they do not, and where it is undecided."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pathsum.records.fuzzy_matching import FuzzyMatchingRow
from pathsum.records.results import Cell
from pathsum.report.themes.fuzzy_matching import facts, fuzzy_matching, section
from pathsum.report.told import Frames
from tests.report import synthetic
from tests.report.synthetic import only


def told(*cells: Cell) -> dict[str, Any]:
    return facts(Frames(only(*cells).cells))


def signs(*cells: Cell) -> list[tuple[int, int]]:
    """Return how many intervals lie above and below 0: of both variants, and of kept and of new tokens after a
    renaming."""
    found = told(*cells)
    rows = [of["attention"] for _, of, _ in found["variants"]] + [found["over_shuffled"][m] for m in ("after", "new")]
    return [(int((r["low"] > 0).sum()), int((r["high"] < 0).sum())) for r in rows]


WORKS, FAILS = synthetic.cell(2, 3, 0), synthetic.cell(2, 3, 1, works=False)


def test_a_match_is_told_with_its_size_beside_an_equal_token_s() -> None:
    found = told(WORKS)
    assert [kind for kind, *_ in found["variants"]] == ["case", "leading space"]
    for _, *both in found["variants"]:
        sizes = [of[name]["value"].item() for of in both for name in ("attention", "nats", "score")]
        assert sizes == pytest.approx([0.3, 1.2, 2.1, 0.6, 2.4, 4.2])
    over = [found[name][m]["value"].item() for m in ("after", "new") for name in ("over_shuffled", "over_another")]
    assert over == pytest.approx([0.2, 0.3, -1.2, -1.8])
    method, variants, _, renamed = section(only(WORKS), {}).paragraphs
    assert "It has no verdict: the claims were frozen before it was measured." in method
    assert "matched in 1 of 1 model: its follower gets 0.30 more attention (equal token: 0.60)" in variants
    assert "in 0 of 1 model and worse in 1 of 1 model (difference of the gains −1.20; against another" in renamed


def test_an_interval_that_reaches_0_counts_for_neither_side() -> None:
    assert signs(WORKS) == [(1, 0), (1, 0), (1, 0), (0, 1)]
    assert signs(FAILS) == [(0, 0)] * 4
    assert signs(WORKS, FAILS) == signs(WORKS)
    below = [dataclasses.replace(r, value=-1.0, low=-1.1, high=-0.9) for r in FAILS.rows(FuzzyMatchingRow)]
    assert signs(FAILS.having(fuzzy_matching=below)) == [(0, 1)] * 4
    assert "only in case is matched in 1 of 2 models" in section(only(WORKS, FAILS), {}).paragraphs[1]


def test_what_was_not_measured_is_not_told() -> None:
    gains, matches = ([r for r in WORKS.rows(FuzzyMatchingRow) if (r.layer is None) == gain] for gain in (True, False))
    method, *_ = section(only(WORKS.having(fuzzy_matching=gains)), {}).paragraphs
    assert method.endswith("This vocabulary has too few such tokens to test.")
    assert len(section(only(WORKS.having(fuzzy_matching=matches)), {}).paragraphs) == 2
    assert told(WORKS.having(fuzzy_matching=[])) == {}
    assert fuzzy_matching(only(synthetic.cell(1, 3, 0))) is None


def test_the_table_and_the_figure_show_the_ground_truth() -> None:
    (table,) = section(only(WORKS), {}).blocks
    assert [e.text for e in table.rows[0]][1:4] == ["L1H0", "0.60 [0.55, 0.65]", "0.30 [0.25, 0.35]"]  # type: ignore[union-attr]
    figure = fuzzy_matching(only(WORKS, FAILS))
    assert figure is not None
    assert len(figure.data) == 2 * (7 + 12)
