"""The bootstrap interval of a mean contains the mean, narrows with the sample size, and has its nominal coverage."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pathsum.statistics.bootstrap import independent, mean_intervals, ratio_interval, resampled_means, standard_errors
from tests.handmade import normal


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_interval_is_that_of_the_normal_where_windows_are_many() -> None:
    values = normal(generator(1), 3, 4001)
    for row, found in zip(values, mean_intervals(values, independent(values), generator()), strict=True):
        error = row.std().item() / 4001**0.5
        assert found.mean == pytest.approx(row.mean().item())
        assert found.high - found.mean == pytest.approx(1.96 * error, rel=0.1)
        assert found.mean - found.low == pytest.approx(1.96 * error, rel=0.1)


def test_sixteen_windows_cover_the_true_mean_nearly_as_often_as_they_say() -> None:
    """About 92 % are expected: 1.96 · √(15/16) of Student's t with 15 degrees of freedom."""
    values = normal(generator(2), 2000, 16)
    found = mean_intervals(values, independent(values), generator())
    covered = sum(i.low <= 0 <= i.high for i in found) / 2000
    assert 0.90 < covered < 0.95


def test_rows_share_their_draws() -> None:
    values = normal(generator(3), 1, 7)
    a, b = mean_intervals(torch.cat([values, values + 5]), independent(values), generator())
    assert (b.low - a.low, b.high - a.high) == (pytest.approx(5), pytest.approx(5))


def test_equal_windows_leave_no_doubt_and_no_rows_no_intervals() -> None:
    (found,) = mean_intervals(torch.full((1, 5), 2.0), torch.arange(5), generator())
    assert (found.mean, found.low, found.high) == pytest.approx((2, 2, 2))
    assert mean_intervals(torch.zeros(0, 5), torch.arange(5), generator()) == []


def test_one_document_tells_nothing_of_its_error() -> None:
    with pytest.raises(ValueError, match="expected windows of at least two documents to draw from, got 1"):
        mean_intervals(torch.zeros(3, 7), torch.zeros(7, dtype=torch.int64), generator())


def clustered(rows: int, documents: int, windows: int, within: float, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return values of mean 0 and variance 1. Values of the same document have correlation ``within``."""
    of = torch.arange(documents).repeat_interleave(windows)
    shared, own = normal(g, rows, documents)[:, of], normal(g, rows, documents * windows)
    return within**0.5 * shared + (1 - within) ** 0.5 * own, of


def test_intervals_over_documents_cover_and_those_over_windows_do_not() -> None:
    """The losses of windows of one document correlate at 0.45 in the default corpus.

    The variance of the mean is then 1 + 7 · 0.45 = 4.15 times that of independent windows. Intervals for independent
    windows reach 1.96 / √4.15 = 0.96 standard deviations and cover 66 %. The test fails with intervals that ignore
    documents.
    """
    values, of = clustered(2000, 41, 8, 0.45, generator(4))
    covered = {}
    for kind, groups in (("documents", of), ("windows", independent(values))):
        found = mean_intervals(values, groups, generator())
        covered[kind] = sum(i.low <= 0 <= i.high for i in found) / 2000
    assert covered["documents"] == pytest.approx(0.94, abs=0.02)  # 41 documents: 1.96 · √(40/41) of Student's t
    assert covered["windows"] == pytest.approx(0.66, abs=0.04)  # four standard errors of 2000 trials


def test_the_standard_error_is_that_of_the_bootstrap() -> None:
    values, of = clustered(3, 401, 5, 0.45, generator(5))
    keep = torch.rand(len(of), generator=generator(6)) < 0.7  # documents of different sizes
    values, of = values[:, keep], of[keep]
    drawn = resampled_means(values, of, generator(), 4000).std(1)
    assert standard_errors(values, of).tolist() == pytest.approx(drawn.tolist(), rel=4 / 8000**0.5)
    alone = independent(values)
    by_hand = values.std(1) / values.shape[1] ** 0.5
    assert standard_errors(values, alone).tolist() == pytest.approx(by_hand.tolist())


def test_each_document_is_drawn_whole() -> None:
    values, of = torch.tensor([[1.0, 1, 1, 0]]), torch.tensor([5, 5, 5, 9])
    drawn = resampled_means(values, of, generator(), 997)[0]
    assert {round(v, 9) for v in drawn.tolist()} == {0.0, 0.75, 1.0}  # twice the small one, each once, twice the large


def test_a_ratio_has_the_error_of_its_denominator_and_none_where_both_move_together() -> None:
    """Guards against dividing the upper end of the numerator by the mean of the denominator.

    By the delta method, a ratio r of independent means has the error √(var(part) + r² var(whole)) / mean(whole).
    """
    g = generator(5)
    part, whole = 2 + normal(g, 4001), 4 + 4 * normal(g, 4001)
    found = ratio_interval(part, whole, independent(part), generator())
    error = (part.var() + 0.25 * whole.var()).sqrt().item() / 4 / 4001**0.5
    assert found.mean == pytest.approx((part.mean() / whole.mean()).item())
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    (alone,) = mean_intervals(part[None], independent(part), generator())
    assert alone.high - alone.low < 0.6 * whole.mean() * (found.high - found.low)
    exact = ratio_interval(whole / 2, whole, independent(whole), generator())
    assert (exact.low, exact.high) == pytest.approx((0.5, 0.5))
