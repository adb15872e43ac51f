"""The section on skip-trigrams reports what the records contain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathsum.records.heads import DistanceRow
from pathsum.records.skip_trigrams import SkipTrigramBugRow, SkipTrigramRow, SkipTrigramTallyRow
from pathsum.report.themes.skip_trigrams import BUGS, ENTRIES_A_HEAD, paragraphs, tables
from tests.report import synthetic

ONE = synthetic.cell(1, 3, 0)


def test_without_heads_there_is_nothing_to_say() -> None:
    none = [synthetic.cell(0, 0, 0)]
    assert paragraphs(none) == tables(none) == ()


def test_the_first_of_each_head_are_shown_with_their_counts() -> None:
    atlas, bugs = tables([ONE])
    assert len(atlas.rows) == 3 * ENTRIES_A_HEAD
    assert atlas.rows[0][-1].text == "3.00 (30 of 90)"
    assert bugs.rows[0][-1].text == "– (2 of 90)"
    assert len(bugs.rows) == BUGS


def test_the_most_expensive_bug_over_the_text_comes_first() -> None:
    dear = replace(ONE.rows(SkipTrigramBugRow)[-1], price_nats=0.01, places=9999)
    bugs = tables([ONE.having(skip_trigram_bugs=[*ONE.rows(SkipTrigramBugRow)[:-1], dear])])[1]
    assert bugs.rows[0][4].text == "9,999"


def test_shares_are_of_the_rows_that_can_tell() -> None:
    """By hits and lift: below chance; too few; beyond chance by less than three standard errors; and by more."""
    told = ((2, 0.5), (4, None), (8, 2.0), (12, 3.0))
    rows = [
        replace(ONE.rows(SkipTrigramRow)[0], text_hits=hits, text_expected=4.0, text_lift=lift, change_nats=-1.0)
        for hits, lift in told
    ]
    text = " ".join(paragraphs([ONE.having(skip_trigrams=rows)]))
    assert "what the head moves from the source makes the output more probable on average for 0 of 4 listed" in text
    assert "the judging documents confirm 1 of 3 (one head)" in text


def test_the_unselected_stand_beside_the_listed_and_intervals_are_over_heads() -> None:
    """Guards against confirming 400 of 400 by the counts that chose them, where 61 % of unselected triples are
    confirmed."""
    shares = [(100, 200), (50, 200), (30, 200)]
    tallies = [
        replace(t, confirmed=b, tested=n) for t, (b, n) in zip(ONE.rows(SkipTrigramTallyRow), shares, strict=True)
    ]
    text = " ".join(paragraphs([ONE.having(skip_trigram_tallies=tallies)]))
    assert "frequent enough, they confirm 180 of 600 (0.30 [0.00, 0.75], interval over heads)" in text
    assert ", 0.40 for all candidates, and 0.016 for triples sampled from the text" in text
    assert "whatever the heads do there (n = 250). Of all candidates, passing or not, a share of 0.30 copies." in text


def test_a_share_of_no_candidates_is_unknown() -> None:
    """Guards against printing 0 of 0 as 0.00."""
    nothing: dict[str, Any] = {"passing": 0, "passing_copying": 0, "base_rate": None, "base_passing": 0}
    tallies = [replace(t, **nothing) for t in ONE.rows(SkipTrigramTallyRow)]
    text = " ".join(paragraphs([ONE.having(skip_trigram_tallies=tallies)]))
    assert ", – for all candidates, and – for triples sampled from the text" in text
    assert "whatever the heads do there (n = 0). " in text


def test_heads_that_copy_from_afar_stand_apart() -> None:
    far = [replace(d, attention=0.01) if d.head == 2 else replace(d, attention=0.2) for d in ONE.rows(DistanceRow)]
    rows = [replace(r, out="other") if r.head != 2 else r for r in ONE.rows(SkipTrigramRow)]
    text = " ".join(paragraphs([ONE.having(distances=far, skip_trigrams=rows)]))
    assert "of long-range copying heads alone (1 head: copying by weights" in text
    assert "within 8 tokens), the share is 1.00." in text


def test_a_model_without_bugs_says_so() -> None:
    clean = ONE.having(skip_trigram_bugs=[])
    assert "No skip-trigram bug was found" in paragraphs([clean])[-1]
    assert len(tables([clean])) == 1
