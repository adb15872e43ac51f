"""Bootstrap intervals of means over windows, by resampling whole documents (docs/framework.md §10.1).

The losses of windows of one document are correlated (0.45 on this suite's text). A bootstrap over single windows would
therefore give intervals that are several times too narrow.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
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
    the percentile interval of a cluster bootstrap (Davison & Hinkley 1997, §3.8), in the unit of ``values``. All rows
    share the ``DRAWS`` (2,000) draws. With fewer than about ten documents the interval is slightly too narrow. Costs
    rows · documents · draws. An empty list without rows. ValueError with fewer than two documents."""
    rows = len(values)
    drawn = resampled_means(values, documents, generator)
    low, high = torch.quantile(drawn, ENDS, dim=-1) if rows else values.new_zeros(2, 0)
    means = values.double().mean(-1)
    return [Interval(*three) for three in torch.stack([means, low, high], -1).tolist()]


def ratio_interval(
    part: Float[Tensor, "batch"],
    whole: Float[Tensor, "batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
) -> Interval:
    """Return mean ``part`` / mean ``whole`` with its 95 % bootstrap interval. Both means use the same resampled
    documents.

    Not finite if the mean of ``whole`` is 0, and meaningless if the interval of that mean contains 0. Costs and errors
    as in ``mean_intervals``. See docs/framework.md §10.2."""
    drawn = resampled_means(torch.stack([part, whole]), documents, generator)
    low, high = torch.quantile(drawn[0] / drawn[1], drawn.new_tensor([0.025, 0.975])).tolist()
    return Interval((part.double().mean() / whole.double().mean()).item(), low, high)


def resampled_means(
    values: Float[Tensor, "rows batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
    draws: int = DRAWS,
) -> Float[Tensor, "rows n"]:
    """Return the mean of each row of ``values`` over resampled documents, one column per draw.

    A draw takes as many documents as there are, with replacement, and averages over all their windows. All rows share
    the draws. In the unit of ``values``, in float64. Costs and errors as in ``mean_intervals``."""
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
