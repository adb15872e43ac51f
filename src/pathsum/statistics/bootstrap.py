"""Bootstrap intervals of means over windows, by resampling whole documents (docs/framework.md §10.1).

Losses of windows of one document correlate at 0.45 here. A bootstrap over single windows would give intervals several
times too narrow.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

DRAWS = 2000
ENDS = torch.tensor([(1 - 0.95) / 2, (1 + 0.95) / 2], dtype=torch.float64)  # of an interval, as quantiles


class Interval(NamedTuple):
    """A mean and its bootstrap percentile interval."""

    mean: float
    low: float
    high: float


Columns = tuple[float | None, float | None, float | None]  # of an interval in a record
NO_INTERVAL: Columns = (None, None, None)


def mean_intervals(
    values: Float[Tensor, "rows batch"], documents: Int[Tensor, "batch"], generator: torch.Generator
) -> list[Interval]:
    """Compute the 95 % percentile interval of each row's mean over windows by a cluster bootstrap over documents
    (Davison & Hinkley 1997, §3.8).

    ``documents`` is the document of each window; ``independent`` where windows share nothing. In the unit of
    ``values``. All rows share the draws. With fewer than about ten documents the interval is slightly too narrow. Costs
    rows · documents · draws. ValueError under two documents."""
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
    """Compute the 95 % percentile interval of mean ``part`` / mean ``whole``, both over the same drawn documents
    (docs/framework.md §10.2). NaN where ``whole`` is 0; meaningless where the interval of ``whole`` contains 0. Costs
    and errors as ``mean_intervals``."""
    drawn = resampled_means(torch.stack([part, whole]), documents, generator)
    low, high = torch.quantile(drawn[0] / drawn[1], drawn.new_tensor([0.025, 0.975])).tolist()
    return Interval((part.double().mean() / whole.double().mean()).item(), low, high)


def resampled_means(
    values: Float[Tensor, "rows batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
    draws: int = DRAWS,
) -> Float[Tensor, "rows n"]:
    """Draw as many documents as there are, with replacement, and average over all their windows: one column per draw,
    the same draws for all rows. In the unit of ``values``, float64. Costs and errors as ``mean_intervals``."""
    _, group, sizes = documents.unique(return_inverse=True, return_counts=True)
    n = len(sizes)
    if n < 2:
        raise ValueError(f"expected windows of at least two documents to draw from, got {n}; measure on more documents")
    sums = values.new_zeros(len(values), n, dtype=torch.float64).index_add_(1, group, values.double())
    drawn = torch.randint(n, (draws, n), generator=generator)
    times = sums.new_zeros(draws, n).scatter_add_(1, drawn, sums.new_ones(draws, n))
    return (sums @ times.mT) / (times @ sizes.double())


def standard_errors(values: Float[Tensor, "rows batch"], documents: Int[Tensor, "batch"]) -> Float[Tensor, "rows"]:
    """Estimate the standard error of each row's mean over windows from the summed deviations of its documents
    (docs/framework.md §10.1). In the unit of ``values``; 0 for a single document."""
    _, group, sizes = documents.unique(return_inverse=True, return_counts=True)
    deviations = values.double() - values.double().mean(-1, keepdim=True)
    sums = deviations.new_zeros(len(values), len(sizes)).index_add_(1, group, deviations)
    return sums.square().sum(-1).mul(len(sizes) / max(1, len(sizes) - 1)).sqrt() / values.shape[-1]


def independent(values: Float[Tensor, "*rows batch"]) -> Int[Tensor, "batch"]:
    """Return a separate document for each window, for windows that share nothing, such as random tokens."""
    return torch.arange(values.shape[-1])
