"""The section on skip-trigrams reports what the records contain."""

from dataclasses import replace

import pytest

from pathsum.records.heads import DistanceRow
from pathsum.records.skip_trigrams import SkipTrigramBugRow, SkipTrigramRow, SkipTrigramTallyRow
from pathsum.report.themes import one_layer
from pathsum.report.themes.one_layer import BUGS, ENTRIES_A_HEAD, atlas, skip_trigrams
from tests.report import synthetic

ONE = synthetic.cell(1, 3, 0)


def test_the_first_of_each_head_are_shown_with_their_counts() -> None:
    shown, bugs = atlas(skip_trigrams([ONE])).values()
    assert len(shown.rows) == 3 * ENTRIES_A_HEAD
    assert shown.rows[0][-1].text == "3.00 (30 of 90)"
    assert bugs.rows[0][-1].text == "– (2 of 90)"
    assert len(bugs.rows) == BUGS


def test_the_most_expensive_bug_over_the_text_comes_first() -> None:
    dear = replace(ONE.rows(SkipTrigramBugRow)[-1], price_nats=0.01, places=9999)
    found = skip_trigrams([ONE.having(skip_trigram_bugs=[*ONE.rows(SkipTrigramBugRow)[:-1], dear])])
    assert atlas(found)["skip_trigram_bugs"].rows[0][4].text == "9,999"


def test_shares_are_of_the_rows_that_can_tell() -> None:
    """By hits and lift: below chance; too few; beyond chance by less than three standard errors; and by more."""
    counts = ((2, 0.5), (4, None), (8, 2.0), (12, 3.0))
    rows = [
        replace(ONE.rows(SkipTrigramRow)[0], text_hits=hits, text_expected=4.0, text_lift=lift, change_nats=-1.0)
        for hits, lift in counts
    ]
    found = skip_trigrams([ONE.having(skip_trigrams=rows)])
    assert (found["tested"]["confirmed"].tolist(), found["tested_interval"]) == ([False, False, True], "one head")
    assert (found["listed"]["change_nats"] > 0).sum() == 0


def test_the_unselected_stand_beside_the_listed_and_intervals_are_over_heads() -> None:
    shares = [(100, 200), (50, 200), (30, 200)]
    tallies = [
        replace(t, confirmed=b, tested=n) for t, (b, n) in zip(ONE.rows(SkipTrigramTallyRow), shares, strict=True)
    ]
    found = skip_trigrams([ONE.having(skip_trigram_tallies=tallies)])
    assert found["tallies"][["confirmed", "tested"]].sum().tolist() == [180, 600]
    assert found["tallies_interval"] == "0.30 [0.00, 0.75]"
    assert (found["passing_copying"], found["candidates_copying"]) == pytest.approx((0.4, 0.3))
    assert set(found["tallies"]["base_rate"]) == {0.016}


def test_heads_that_copy_from_afar_stand_apart() -> None:
    far = [replace(d, attention=0.01) if d.head == 2 else replace(d, attention=0.2) for d in ONE.rows(DistanceRow)]
    rows = [replace(r, out="other") if r.head != 2 else r for r in ONE.rows(SkipTrigramRow)]
    assert skip_trigrams([ONE.having(distances=far, skip_trigrams=rows)])["far"].to_dict() == {(ONE.name, 0, 2): 1.0}


def test_a_model_without_bugs_has_no_table_of_them() -> None:
    clean = ONE.having(skip_trigram_bugs=[])
    told = one_layer.section(replace(synthetic.results(layers=(1,)), cells={ONE.name: clean}), {})
    assert told.paragraphs[-1].endswith("No bug was found.")
    assert len(told.blocks) == 3
