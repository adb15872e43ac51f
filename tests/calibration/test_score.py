"""Precision and recall, their intervals, and the corpora that count."""

import math
from dataclasses import replace

import pytest
import torch

from pathsum.calibration.detectors import DETECTORS
from pathsum.calibration.score import NORMAL_95, calibrate, interval, row, tried, wilson
from pathsum.calibration.synthetic import Curve
from tests import handmade
from tests.calibration.synthetic import N_WORDS, config, stand_in, untrained


def singles(hits: int, n: int) -> tuple[list[int], list[int]]:
    """Return one corpus per unit."""
    return [1] * hits + [0] * (n - hits), [1] * n


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_intervals_of_independent_units_are_those_of_newcombe_1998(hits: int, n: int, low: float, high: float) -> None:
    """Compared with Table I, method 3, to its four digits."""
    assert interval(*singles(hits, n)) == pytest.approx((hits / n, low, high), abs=5e-5)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (3, 7), (7, 7), (41, 43), (1, 1)])
def test_at_either_end_the_share_found_is_just_as_far_as_chance_allows(hits: int, n: int) -> None:
    """Identity: |share − p| = z √(p (1 − p) / n) at both ends p, unless the end is 0 or 1."""
    share, ends = hits / n, wilson(hits / n, float(n))
    assert 0 <= ends[0] <= share <= ends[1] <= 1
    for p in ends:
        assert abs(share - p) == pytest.approx(NORMAL_95 * math.sqrt(p * (1 - p) / n), abs=1e-9)


@pytest.mark.parametrize(("hits", "n"), [(16, 17), (17, 17), (5, 9)])
def test_copies_of_a_unit_within_its_synthetic_model_add_nothing(hits: int, n: int) -> None:
    """17 skip-trigrams in four equal models count as 17 units. Counted as 68, the interval would be half as wide."""
    once, four_times = singles(hits, n), [[4 * count for count in counts] for counts in singles(hits, n)]
    assert interval(*four_times) == pytest.approx(interval(*once), abs=1e-12)
    _, low, high = interval(*singles(4 * hits, 4 * n))
    _, wide_low, wide_high = interval(*once)
    assert None not in (low, high, wide_low, wide_high)
    assert high - low < 0.6 * (wide_high - wide_low)  # type: ignore[operator]


def test_units_count_each_without_variance_between_corpora_and_once_where_all_agree() -> None:
    assert interval([9] * 20, [10] * 20) == pytest.approx((0.9, *wilson(0.9, 200.0)))
    assert interval([5, 5, 5], [5, 5, 5]) == (1.0, *wilson(1.0, 3.0))
    assert interval([], []) == interval([0], [0]) == (None, None, None)


def test_a_row_counts_the_ground_truth_found_and_both() -> None:
    models = [[(True, True)] * 3 + [(False, True)], [(True, False)] * 2 + [(False, False)], [(False, False)] * 4, []]
    found = row("d", models, not_learned=2)
    assert (found.detector, found.n, found.positives, found.found, found.hits) == ("d", 11, 5, 4, 3)
    assert (found.precision, found.precision_low, found.precision_high) == interval([3], [4])
    assert (found.recall, found.recall_low, found.recall_high) == interval([3, 0], [3, 2])
    assert (found.models, found.positive_models, found.not_learned) == (3, 2, 2)
    silent = row("d", [[(True, False), (False, False)]], 0)
    assert silent.precision is silent.precision_low is silent.precision_high is None
    assert silent.recall == 0
    wrong = row("d", [[(False, True)]], 0)
    assert wrong.recall is wrong.recall_low is wrong.recall_high is None
    assert wrong.precision == 0


def test_a_synthetic_model_whose_rules_are_not_learned_is_left_out_and_counted() -> None:
    """Of three models on bigram text, one has learned all rules, and the others one rule not quite enough."""
    synthetic = untrained(config())
    table = torch.full((N_WORDS + 1, N_WORDS + 1), -9.0)
    table[1:, 1:] = torch.tensor(synthetic.text.truth.bigram).log().mT
    knows, blind = (stand_in(synthetic, handmade.bigram(sign * table)) for sign in (1, -1))
    curves = [
        {"copied": [4.0, 1.3], "ruled": [2.0, 0.6]},
        {"copied": [4.0]},
        {"copied": [4.0, 1.3], "ruled": [2.0, 0.7]},
    ]
    models = [replace(g, curve=Curve([], [], c)) for g, c in zip((knows, blind, blind), curves, strict=True)]
    rows = calibrate([tried(model) for model in models])
    assert [r.detector for r in rows] == list(DETECTORS)
    assert all(r.not_learned == 2 for r in rows)
    (bigrams,) = [r for r in rows if r.detector == "bigram"]
    assert (bigrams.n, bigrams.models, bigrams.precision, bigrams.recall) == (5 * N_WORDS, 1, 1, 1)
    rows = calibrate([tried(replace(model, curve=Curve([], [], {}))) for model in models])
    (all_three,) = [r for r in rows if r.detector == "bigram"]
    assert (all_three.models, all_three.not_learned, all_three.recall) == (3, 0, 1 / 3)
