"""The section on fuzzy matching, where heads match alike tokens, where they do not, and where it is undecided."""

from __future__ import annotations

import dataclasses

from pathsum.records.fuzzy_matching import FuzzyMatchingRow
from pathsum.records.results import Cell, Results
from pathsum.report.themes.fuzzy_matching import fuzzy_matching, section
from tests.report import synthetic


def only(*cells: Cell) -> Results:
    return dataclasses.replace(synthetic.results(), cells={c.name: c for c in cells})


WORKS, FAILS = synthetic.cell(2, 3, 0), synthetic.cell(2, 3, 1, works=False)


def test_a_match_is_stated_with_its_size_beside_an_equal_token_s() -> None:
    method, variants, _, renamed = section(only(WORKS), {}).paragraphs
    assert "A token that differs only in case is matched: its follower gets 0.30 more attention" in variants
    nats = (
        "(equal token: 0.60) and 1.20 nats more log-probability (equal token: 2.40) than the follower of the control."
    )
    assert variants.count(nats) == 2
    scores = (
        f"2.10 for a token that differs only in {what} (equal token: 4.20)" for what in ("case", "a leading space")
    )
    assert f"over all pairs of tokens, is {' and '.join(scores)}." in variants
    assert (
        "first copy helps more than the control: its gain minus that from the control is 0.20, and minus that from "
        "another passage 0.30" in renamed
    )
    assert (
        "is predicted worse after the first copy than after the control (difference of the gains −1.20; against another"
        in renamed
    )
    assert "It has no verdict: the claims were frozen before it was measured." in method


def test_where_intervals_reach_0_nothing_is_shown_and_only_below_0_is_it_denied() -> None:
    _, variants, _, renamed = section(only(FAILS), {}).paragraphs
    assert variants.count("is not shown to be matched: its follower") == 2
    assert (
        "first copy is not shown to help more than the control: its gain minus that from the control is 0.00" in renamed
    )
    assert "is not shown to be predicted better after the first copy" in renamed
    below = [dataclasses.replace(r, value=-1.0, low=-1.1, high=-0.9) for r in FAILS.rows(FuzzyMatchingRow)]
    _, variants, _, renamed = section(only(FAILS.having(fuzzy_matching=below)), {}).paragraphs
    assert variants.count("is not matched: its follower") == 2
    assert "first copy helps less than the control: its gain minus that from the control is −1.00" in renamed
    mixed = section(only(WORKS, FAILS), {}).paragraphs
    assert "that differs only in case is matched in 1 of 2 models" in mixed[1]
    assert (
        "first copy helps more than the control in 1 of 2 models: its gain minus that from the control is 0.00"
        in mixed[3]
    )


def test_what_was_not_measured_is_not_stated() -> None:
    gains = [r for r in WORKS.rows(FuzzyMatchingRow) if r.layer is None]
    variants, *_ = section(only(WORKS.having(fuzzy_matching=gains)), {}).paragraphs
    assert variants.endswith("This vocabulary has too few such tokens to test.")
    (told,) = section(only(WORKS.having(fuzzy_matching=[])), {}).paragraphs
    assert told == "This sweep has no two-layer model to test."
    assert fuzzy_matching(only(synthetic.cell(1, 3, 0))) is None


def test_the_table_and_the_figure_show_the_ground_truth() -> None:
    (table,) = section(only(WORKS), {}).blocks
    assert [e.text for e in table.rows[0]][1:4] == ["L1H0", "0.60 [0.55, 0.65]", "0.30 [0.25, 0.35]"]  # type: ignore[union-attr]
    figure = fuzzy_matching(only(WORKS, FAILS))
    assert figure is not None
    assert len(figure.data) == 2 * (7 + 12)
