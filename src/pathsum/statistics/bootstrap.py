"""Bootstrap intervals of means over windows, by resampling whole documents (docs/framework.md §10.1).

The losses of windows of one document are correlated, so a bootstrap over windows would give far too narrow intervals.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from scipy.special import ndtri, stdtrit
from torch import Tensor

DRAWS = 2000
ENDS = torch.tensor([(1 - 0.95) / 2, (1 + 0.95) / 2], dtype=torch.float64)  # ends of a 95 % interval, as quantiles


class Interval(NamedTuple):
    """A mean, or a ratio of two means, and the two ends of its bootstrap interval."""

    mean: float
    low: float
    high: float


Columns = tuple[float | None, float | None, float | None]  # mean, low, high of an interval
NO_INTERVAL: Columns = (None, None, None)


def mean_intervals(
    values: Float[Tensor, "rows batch"], documents: Int[Tensor, "batch"], generator: torch.Generator
) -> list[Interval]:
    """Return the mean over windows of each row of ``values``, with its 95 % bootstrap interval over documents.

    ``documents`` holds the document of each window; use ``independent`` for windows that share nothing. The interval is
    the ``widened`` percentile interval of a cluster bootstrap (Davison & Hinkley 1997, §3.8), in the unit of
    ``values``. All rows share the ``DRAWS`` (2,000) draws. An empty list without rows. ValueError with fewer than two
    documents."""
    means, drawn = values.double().mean(-1), resampled_means(values, documents, generator)
    low, high = widened(means, drawn, documents)
    return [Interval(*three) for three in torch.stack([means, low, high], -1).tolist()]


def ratio_interval(
    part: Float[Tensor, "batch"],
    whole: Float[Tensor, "batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
) -> Interval:
    """Return mean ``part`` / mean ``whole`` with its 95 % bootstrap interval. Both means use the same resampled
    documents.

    Not finite if the mean of ``whole`` is 0, and meaningless if the interval of that mean contains 0. See
    docs/framework.md §10.2."""
    drawn = resampled_means(torch.stack([part, whole]), documents, generator)
    ratio, drawn = part.double().mean() / whole.double().mean(), drawn[:, drawn[1] != 0]
    return Interval(ratio.item(), *widened(ratio, drawn[0] / drawn[1], documents).tolist())


def share_interval(
    part: Float[Tensor, "batch"],
    whole: Float[Tensor, "batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
) -> Columns:
    """Return ``ratio_interval``, or ``NO_INTERVAL`` unless the interval of the mean of ``whole`` lies above 0."""
    (of,) = mean_intervals(whole[None], documents, generator)
    return ratio_interval(part, whole, documents, generator) if of.low > 0 else NO_INTERVAL


def widened(
    value: Float[Tensor, "*rows"], drawn: Float[Tensor, "*rows n"], documents: Int[Tensor, "batch"]
) -> Float[Tensor, "2 *rows"]:
    """Return the two ends of the 95 % interval of ``value``, a statistic of windows, from its bootstrap draws.

    ``drawn`` holds the statistic of each draw of ``documents``. The ends are those of the percentile interval, with
    their distances from ``value`` multiplied by ``widening(documents)``. In the unit of ``value``. See
    docs/framework.md §10.1."""
    if not len(drawn):
        return drawn.new_zeros(2, *value.shape)
    return value + widening(documents) * (torch.quantile(drawn, ENDS, dim=-1) - value)


def widening(documents: Int[Tensor, "batch"]) -> float:
    """Return the factor by which the percentile bootstrap is too narrow for a mean over few documents: √(n / (n − 1))
    times Student's t quantile with n − 1 degrees of freedom, divided by the normal quantile.

    n is the effective number of ``documents``, (Σ windows)² / Σ windows² (Kish 1965), and at least 2. It is the number
    of documents if all have as many windows. 9.2 for two documents, 1.17 for twelve, 1 for infinitely many. See
    Hesterberg 2015, §4.2, and docs/framework.md §10.1."""
    sizes = documents.unique(return_counts=True)[1].double()
    n = max(2.0, (sizes.sum().square() / sizes.square().sum()).item())
    end = ENDS[1].item()
    return math.sqrt(n / (n - 1)) * float(stdtrit(n - 1, end) / ndtri(end))


def resampled_means(
    values: Float[Tensor, "rows batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
    draws: int = DRAWS,
) -> Float[Tensor, "rows n"]:
    """Return the mean of each row of ``values`` over resampled documents, one column per draw.

    A draw takes as many documents as there are, with replacement, and averages over all their windows. All rows share
    the draws. In the unit of ``values``, in float64. Errors as in ``mean_intervals``."""
    _, group, sizes = documents.unique(return_inverse=True, return_counts=True)
    n = len(sizes)
    if n < 2:
        raise ValueError(f"expected windows of at least two documents to draw from, got {n}; measure on more documents")
    sums = values.new_zeros(len(values), n, dtype=torch.float64).index_add_(1, group, values.double())
    drawn = torch.randint(n, (draws, n), generator=generator)
    times = sums.new_zeros(draws, n).scatter_add_(1, drawn, sums.new_ones(draws, n))
    return (sums @ times.mT) / (times @ sizes.double())


def standard_errors(values: Float[Tensor, "rows batch"], documents: Int[Tensor, "batch"]) -> Float[Tensor, "rows"]:
    """Estimate the standard error of each row's mean over windows, where windows of one document may be correlated.

    The estimate uses the summed deviations of each document. In the unit of ``values``; 0 for a single document. See
    docs/framework.md §10.1."""
    _, group, sizes = documents.unique(return_inverse=True, return_counts=True)
    deviations = values.double() - values.double().mean(-1, keepdim=True)
    sums = deviations.new_zeros(len(values), len(sizes)).index_add_(1, group, deviations)
    return sums.square().sum(-1).mul(len(sizes) / max(1, len(sizes) - 1)).sqrt() / values.shape[-1]


def independent(values: Float[Tensor, "*rows batch"]) -> Int[Tensor, "batch"]:
    """Number each window as a document of its own, for windows that share nothing, such as random tokens."""
    return torch.arange(values.shape[-1])
