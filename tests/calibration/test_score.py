"""Precision and recall, their intervals, and which models count."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pathsum.calibration.detectors import DETECTORS
from pathsum.calibration.score import NORMAL_95, calibrate, row, wilson
from tests import handmade
from tests.calibration.grown import N_WORDS, config, stand_in, untrained


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_intervals_are_those_of_newcombe_1998(hits: int, n: int, low: float, high: float) -> None:
    """Table I there, method 3, to its four digits."""
    assert wilson(hits, n) == pytest.approx((hits / n, low, high), abs=5e-5)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (3, 7), (7, 7), (41, 43), (1, 1)])
def test_at_either_end_the_share_found_is_just_as_far_as_chance_allows(hits: int, n: int) -> None:
    """Identity: |share − p| = z √(p (1 − p) / n) at both ends p, unless the share is at the end itself."""
    found = wilson(hits, n)
    assert None not in found
    share, *ends = (x for x in found if x is not None)
    assert 0 <= ends[0] <= share <= ends[1] <= 1
    for p in ends:
        assert abs(share - p) == pytest.approx(NORMAL_95 * math.sqrt(p * (1 - p) / n), abs=1e-9)


def test_of_nothing_there_is_no_share() -> None:
    assert wilson(0, 0) == (None, None, None)


def test_a_row_counts_what_is_planted_found_and_both() -> None:
    units = [(True, True)] * 3 + [(True, False)] * 2 + [(False, True)] + [(False, False)] * 5
    found = row("d", units, models=7, not_learnt=2)
    assert (found.detector, found.n, found.planted, found.found, found.hits) == ("d", 11, 5, 4, 3)
    assert (found.precision, found.precision_low, found.precision_high) == wilson(3, 4)
    assert (found.recall, found.recall_low, found.recall_high) == wilson(3, 5)
    assert (found.models, found.not_learnt) == (7, 2)


def test_without_finds_there_is_no_precision_and_without_plants_no_recall() -> None:
    silent = row("d", [(True, False), (False, False)], 1, 0)
    assert silent.precision is silent.precision_low is silent.precision_high is None
    assert silent.recall == 0
    wrong = row("d", [(False, True)], 1, 0)
    assert wrong.recall is wrong.recall_low is wrong.recall_high is None
    assert wrong.precision == 0


def test_a_model_that_has_not_learnt_its_rules_is_left_out_and_counted(tmp_path: Path) -> None:
    """Three models of words and their successors: one that knows them all, two that know none and have not learnt what
    was planted either: of one rule nothing, or not quite half of one of two."""
    grown = untrained(config(), tmp_path)
    d_vocab = N_WORDS + 1
    table = torch.full((d_vocab, d_vocab), -9.0)
    table[1:, 1:] = torch.tensor(grown.world.truth.bigram).log().mT
    knows = replace(stand_in(grown, handmade.bigram(table)), losses={"copied": [4.0, 1.9], "ruled": [2.0, 0.9]})
    blind = stand_in(grown, handmade.bigram(-table))
    blind = [
        replace(blind, losses=losses) for losses in ({"copied": [4.0]}, {"copied": [4.0, 1.9], "ruled": [2.0, 1.0]})
    ]
    rows = calibrate([blind[0], knows, blind[1]])
    assert [r.detector for r in rows] == list(DETECTORS)
    assert all((r.models, r.not_learnt) == (1, 2) for r in rows)
    assert (rows[0].n, rows[0].precision, rows[0].recall) == (5 * N_WORDS, 1, 1)
    (all_three, *_) = calibrate([replace(g, losses={}) for g in (*blind, knows)])
    assert (all_three.models, all_three.not_learnt, all_three.recall) == (3, 0, 1 / 3)
