"""The bootstrap interval of a mean contains the mean, narrows with the sample size, and has its nominal coverage."""

import pytest
import torch
from torch import Tensor

from pathsum.statistics.bootstrap import (
    NO_INTERVAL,
    Interval,
    independent,
    mean_intervals,
    ratio_interval,
    resampled_means,
    share_interval,
    standard_errors,
    widening,
)
from tests.handmade import normal

TRIALS = 1500
ERRORS = 3 * (0.95 * 0.05 / TRIALS) ** 0.5  # three standard errors of a coverage of 95 %


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_interval_is_that_of_the_normal_where_windows_are_many() -> None:
    values = normal(generator(1), 3, 4001)
    for row, found in zip(values, mean_intervals(values, independent(values), generator()), strict=True):
        error = row.std().item() / 4001**0.5
        assert found.mean == pytest.approx(row.mean().item())
        assert found.high - found.mean == pytest.approx(1.96 * error, rel=0.1)
        assert found.mean - found.low == pytest.approx(1.96 * error, rel=0.1)


def coverage(found: list[Interval], value: float = 0.0) -> float:
    return sum(i.low <= value <= i.high for i in found) / len(found)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 12, 32, 120])
def test_intervals_of_few_windows_cover_the_true_mean_as_often_as_those_of_many(n: int) -> None:
    """Calibration on normal values. The percentile interval covers 50 % at n = 2, 83 % at 5, 88 % at 8, 91 % at 12.

    The ends of the percentile interval lie in a grid of few means where n is small, so 93 % is enough; at n = 2 it is
    the exact value, P(|t₁| ≤ 9.17)."""
    values = normal(generator(n), TRIALS, n)
    covered = coverage(mean_intervals(values, independent(values), generator()))
    assert 0.93 - ERRORS < covered < 0.95 + ERRORS


@pytest.mark.parametrize(("n", "expected"), [(2, 0.875), (5, 0.89), (12, 0.90), (64, 0.935)])
def test_intervals_of_skewed_values_cover_less_but_more_than_the_percentile_interval(n: int, expected: float) -> None:
    """Exponential values: the percentile interval covers 47, 79, 86 and 93 %."""
    values = -torch.rand(TRIALS, n, generator=generator(n), dtype=torch.float64).log()
    covered = coverage(mean_intervals(values, independent(values), generator()), 1.0)
    assert covered == pytest.approx(expected, abs=4 * (expected * (1 - expected) / TRIALS) ** 0.5)


@pytest.mark.parametrize("n", [5, 12, 64])
def test_the_interval_of_a_paired_ratio_covers_it(n: int) -> None:
    """The ratio of the means is 1/2, and part and whole vary together. The percentile interval covers 83 % at n = 5."""
    g = generator(n)
    whole = 3 + normal(g, 400, n)
    part = whole / 2 + 0.3 * normal(g, 400, n)
    found = [
        ratio_interval(a, b, independent(a), generator(i)) for i, (a, b) in enumerate(zip(part, whole, strict=True))
    ]
    assert coverage(found, 0.5) > 0.93 - 3 * (0.95 * 0.05 / 400) ** 0.5


@pytest.mark.parametrize(("n", "t"), [(2, 12.7062), (3, 4.3027), (12, 2.2010), (121, 1.9799)])
def test_the_widening_is_that_of_students_t(n: int, t: float) -> None:
    """Compared with printed quantiles of Student's t for n − 1 degrees of freedom, to their four digits."""
    documents = torch.arange(n)
    assert widening(documents) == pytest.approx((n / (n - 1)) ** 0.5 * t / 1.959964, abs=1e-4)
    assert widening(documents.repeat_interleave(7)) == widening(documents)


def test_documents_of_unequal_size_count_as_fewer() -> None:
    """Four windows of one document and one of each of four others: (8)² / (16 + 4) = 3.2 documents. One document with
    nearly all windows still counts as one of two."""
    of = torch.tensor([0, 0, 0, 0, 1, 2, 3, 4])
    assert widening(torch.arange(4)) < widening(of) < widening(torch.arange(3))
    assert widening(torch.tensor([0] * 99 + [1])) == widening(torch.arange(2))


def test_rows_share_their_draws_and_equal_windows_leave_no_doubt() -> None:
    values = normal(generator(3), 1, 7)
    a, b = mean_intervals(torch.cat([values, values + 5]), independent(values), generator())
    assert (b.low - a.low, b.high - a.high) == (pytest.approx(5), pytest.approx(5))
    (found,) = mean_intervals(torch.full((1, 5), 2.0), torch.arange(5), generator())
    assert (found.mean, found.low, found.high) == pytest.approx((2, 2, 2))
    assert mean_intervals(torch.zeros(0, 5), torch.arange(5), generator()) == []
    with pytest.raises(ValueError, match="expected windows of at least two documents to draw from, got 1"):
        mean_intervals(torch.zeros(3, 7), torch.zeros(7, dtype=torch.int64), generator())


def clustered(rows: int, documents: int, windows: int, within: float, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return values of mean 0 and variance 1. Values of the same document have correlation ``within``."""
    of = torch.arange(documents).repeat_interleave(windows)
    shared, own = normal(g, rows, documents)[:, of], normal(g, rows, documents * windows)
    return within**0.5 * shared + (1 - within) ** 0.5 * own, of


def test_intervals_over_documents_cover_and_those_over_windows_do_not() -> None:
    """At a correlation of 0.45, the variance of the mean is 1 + 7 · 0.45 = 4.15 times that of independent windows.
    Intervals for these reach 1.96 / √4.15 = 0.96 standard deviations and cover 66 %."""
    values, of = clustered(2000, 41, 8, 0.45, generator(4))
    covered = {}
    for kind, groups in (("documents", of), ("windows", independent(values))):
        covered[kind] = coverage(mean_intervals(values, groups, generator()))
    assert covered["documents"] == pytest.approx(0.95, abs=ERRORS)
    assert covered["windows"] == pytest.approx(0.66, abs=0.04)  # four standard errors of 2000 trials


@pytest.mark.parametrize("documents", [5, 8, 12, 60])
def test_intervals_over_few_documents_of_unequal_size_cover(documents: int) -> None:
    """Documents of one to eight windows that correlate at 0.45. The percentile interval covers 82 % of 5 documents and
    89 % of 12."""
    g = generator(documents)
    of = torch.arange(documents).repeat_interleave(1 + torch.arange(documents) ** 2 % 8)
    shared, own = normal(g, TRIALS, documents)[:, of], normal(g, TRIALS, len(of))
    values = 0.45**0.5 * shared + 0.55**0.5 * own
    assert 0.93 - ERRORS < coverage(mean_intervals(values, of, generator())) < 0.97 + ERRORS


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
    """By the delta method, a ratio r of independent means has the error √(var(part) + r² var(whole)) / mean(whole)."""
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


def test_a_share_is_a_ratio_whose_whole_is_clearly_above_0() -> None:
    whole, g = 2 + normal(generator(5), 41), generator()
    mean_intervals(whole[None], independent(whole), g)
    assert share_interval(whole / 2, whole, independent(whole), generator()) == ratio_interval(
        whole / 2, whole, independent(whole), g
    )
    for other in (whole - whole.mean() + 0.1, -whole):
        assert share_interval(whole, other, independent(whole), generator()) == NO_INTERVAL


def test_a_share_of_which_some_documents_have_nothing_has_finite_ends() -> None:
    """Some of the draws hold none of the five documents that count."""
    whole = torch.tensor([1.0] * 5 + [0.0] * 3)
    found = share_interval(0.5 * whole, whole, torch.arange(8), torch.Generator().manual_seed(0))
    assert found == pytest.approx((0.5, 0.5, 0.5))
