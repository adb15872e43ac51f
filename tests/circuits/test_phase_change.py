"""When in-context learning begins."""

from __future__ import annotations

import math

import pytest

from pathsum.circuits.phase_change import Onset, onset


def test_the_phase_change_is_where_half_of_the_rise_is_crossed() -> None:
    """From 0.1 to 0.9: 0.5 is a quarter of the way from 0.3 to 1.1."""
    assert onset([0, 10, 20, 40, 80], [0.1, 0.0, 0.3, 1.1, 0.9]) == Onset(tokens_seen=25, low=20, high=40)


def test_a_sigmoid_s_onset_is_its_middle() -> None:
    """Calibration: evaluated every 10 around 503, within the curvature of one interval."""
    tokens = list(range(0, 1001, 10))
    found = onset(tokens, [0.05 + 0.6 / (1 + math.exp(-(t - 503) / 20)) for t in tokens])
    assert found is not None
    assert abs(found.tokens_seen - 503) <= 1
    assert (found.low, found.high) == (500, 510)


def test_a_crossing_that_is_lost_again_is_not_the_phase_change() -> None:
    assert onset([0, 1, 2, 3, 4, 5], [0.0, 0.6, 0.0, 0.0, 1.0, 1.0]) == Onset(tokens_seen=4, low=3, high=4)


def test_without_a_rise_there_is_no_phase_change() -> None:
    """Negative control: flat, falling, and risen by less than asked for."""
    for series in ([0.1, 0.1, 0.1], [0.9, 0.5, 0.1], [0.0, 0.1, 0.19], [0.0, 0.9, 0.1]):
        assert onset([0, 10, 20], series) is None
    assert onset([0, 10, 20], [0.0, 0.1, 0.19], least_rise=0.1) is not None
    assert onset([0, 10, 20], [0.0, 0.0, 0.0], least_rise=0.0) is None


def test_an_onset_on_an_evaluation_is_that_evaluation() -> None:
    assert onset([0, 10, 20], [0.0, 0.5, 1.0]) == Onset(tokens_seen=10, low=0, high=10)


def test_broken_curves_are_refused() -> None:
    with pytest.raises(ValueError, match="got 3 and 2"):
        onset([0, 1, 2], [0.0, 1.0])
    with pytest.raises(ValueError, match="increasing tokens seen and finite values"):
        onset([0, 2, 2], [0.0, 0.5, 1.0])
    with pytest.raises(ValueError, match="increasing tokens seen and finite values"):
        onset([0, 1, 2], [0.0, math.nan, 1.0])
