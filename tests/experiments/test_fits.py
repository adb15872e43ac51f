"""A known line is recovered with Student's interval, also if some values are bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.fits import censored_line, predicted, slopes


def test_a_power_is_its_own_slope() -> None:
    assert slopes(np.log([3, 12, 48, 192]), np.log([1, 2, 4, 8])) == [pytest.approx((2, 2, 2), abs=1e-6)]


def test_the_interval_is_students() -> None:
    """For y = 0, 1, 1, 2 at x = 0 … 3: slope 0.6, standard error √(0.2 / 2 / 5), t(0.975, 2) = 4.302653."""
    half = 4.302653 * math.sqrt(0.2 / 2 / 5)
    found = slopes(np.array([0.0, 1.0, 1.0, 2.0]), np.arange(4.0))
    assert found == [pytest.approx((0.6, 0.6 - half, 0.6 + half), abs=1e-6)]


def test_too_few_measurements_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 2 measurements"):
        slopes(np.zeros(2), np.arange(2.0))


def test_without_bounds_predictions_have_students_interval() -> None:
    """By hand: y = 1, 3, 2, given twice at x = −1, 0, 1: slope 0.5, residual variance 0.75, and a mean of 3 at x =
    2."""
    x, y = np.tile([-1.0, 0.0, 1.0], 2), np.tile([1.0, 3.0, 2.0], 2)
    slope, more = predicted(x, y, np.zeros(6, bool), 2.0)
    t = 2.776445
    assert slope[0] == pytest.approx(0.5)
    assert slope[2] - 0.5 == pytest.approx(t * math.sqrt(0.75 / 4), rel=0.06)
    assert more[0] == pytest.approx(3)
    assert more[2] - 3 == pytest.approx(t * math.sqrt(0.75 * (1 + 1 / 6 + 4 / 4)), rel=0.06)
    assert 3 - more[1] == pytest.approx(more[2] - 3, rel=0.06)


def test_bounds_neither_bend_the_line_nor_are_they_taken_for_values() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 3000)
    y = 1 - 1.5 * x + 0.5 * rng.standard_normal(3000)
    censored = y > 1.5
    cut = np.minimum(y, 1.5)
    line, spread = censored_line(x, cut, censored)
    assert line == pytest.approx([1, -1.5], abs=0.05)
    assert spread[0] == pytest.approx(0.5, abs=0.03)
    assert slopes(cut, x)[0][2] > -1.3  # bounds as values
    assert slopes(y[~censored], x[~censored])[0][0] > -1.4  # bounds left out
