"""The bootstrap of a mean: it holds the mean, narrows with the sample and covers as often as it says."""

from __future__ import annotations

import pytest
import torch

from pathsum.circuits.bootstrap import mean_intervals
from tests.handmade import normal


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_interval_is_that_of_the_normal_where_windows_are_many() -> None:
    values = normal(generator(1), 3, 4001)
    for row, found in zip(values, mean_intervals(values, generator()), strict=True):
        error = row.std().item() / 4001**0.5
        assert found.mean == pytest.approx(row.mean().item())
        assert found.high - found.mean == pytest.approx(1.96 * error, rel=0.1)
        assert found.mean - found.low == pytest.approx(1.96 * error, rel=0.1)


def test_sixteen_windows_cover_the_true_mean_nearly_as_often_as_they_say() -> None:
    """Expected about 92 %: 1.96 · √(15/16) of Student's t with 15 degrees of freedom."""
    found = mean_intervals(normal(generator(2), 2000, 16), generator())
    covered = sum(i.low <= 0 <= i.high for i in found) / 2000
    assert 0.90 < covered < 0.95


def test_rows_share_their_draws() -> None:
    values = normal(generator(3), 1, 7)
    a, b = mean_intervals(torch.cat([values, values + 5]), generator())
    assert (b.low - a.low, b.high - a.high) == (pytest.approx(5), pytest.approx(5))


def test_equal_windows_leave_no_doubt_and_no_rows_no_intervals() -> None:
    (found,) = mean_intervals(torch.full((1, 5), 2.0), generator())
    assert (found.mean, found.low, found.high) == pytest.approx((2, 2, 2))
    assert mean_intervals(torch.zeros(0, 5), generator()) == []


def test_one_window_tells_nothing_of_its_error() -> None:
    with pytest.raises(ValueError, match="expected at least two windows to draw from, got 1"):
        mean_intervals(torch.zeros(3, 1), generator())
