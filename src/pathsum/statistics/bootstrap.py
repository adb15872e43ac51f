"""How well is a mean over windows known, which come in documents?

Windows of one document are alike: their losses correlate at 0.45 here, so that a bootstrap that draws windows one by
one gives intervals several times too narrow. These functions draw whole documents, with all their windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

DRAWS = 2000


@dataclass(frozen=True)
class Interval:
    """A mean, and the percentile interval of its bootstrap."""

    mean: float
    low: float
    high: float


def mean_intervals(
    values: Float[Tensor, "rows batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
    level: float = 0.95,
    draws: int = DRAWS,
) -> list[Interval]:
    """Bound each row's mean over windows, had other documents been drawn: the percentile interval of a cluster
    bootstrap (Davison & Hinkley 1997, §3.8).

    ``documents`` says which windows belong together; ``independent`` where none do. In the unit of ``values``. All rows
    share the draws, so that two rows which differ by a constant keep that difference. Under some ten documents the
    interval is a little too narrow: by √(1 − 1/documents) and by the normal's tail. Costs rows · documents · draws.
    ValueError under two documents.
    """
    rows = len(values)
    ends = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    drawn = resampled_means(values, documents, generator, draws)
    low, high = torch.quantile(drawn, ends, dim=-1) if rows else values.new_zeros(2, 0)
    means = values.double().mean(-1)
    return [Interval(*three) for three in torch.stack([means, low, high], -1).tolist()]


def ratio_interval(
    part: Float[Tensor, "batch"],
    whole: Float[Tensor, "batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
) -> Interval:
    """Bound the mean of ``part`` over the mean of ``whole``, both drawn with the same documents: the 95 % percentile
    interval, which has the error of the denominator too. Not a number where ``whole`` is 0; wide or meaningless where
    its own interval has 0 in it. Costs and errors as ``mean_intervals``."""
    drawn = resampled_means(torch.stack([part, whole]), documents, generator)
    low, high = torch.quantile(drawn[0] / drawn[1], drawn.new_tensor([0.025, 0.975])).tolist()
    return Interval((part.double().mean() / whole.double().mean()).item(), low, high)


def resampled_means(
    values: Float[Tensor, "rows batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
    draws: int = DRAWS,
) -> Float[Tensor, "rows n"]:
    """Draw as many documents as there are, with replacement, and average over all their windows; one column a draw, the
    same draws for all rows. In the unit of ``values``, float64. Costs and errors as ``mean_intervals``."""
    _, group, sizes = documents.unique(return_inverse=True, return_counts=True)
    n = len(sizes)
    if n < 2:
        raise ValueError(f"expected windows of at least two documents to draw from, got {n}; measure on more documents")
    sums = values.new_zeros(len(values), n, dtype=torch.float64).index_add_(1, group, values.double())
    drawn = torch.randint(n, (draws, n), generator=generator)
    times = sums.new_zeros(draws, n).scatter_add_(1, drawn, sums.new_ones(draws, n))
    return (sums @ times.mT) / (times @ sizes.double())


def standard_errors(values: Float[Tensor, "rows batch"], documents: Int[Tensor, "batch"]) -> Float[Tensor, "rows"]:
    """Estimate the error of each row's mean over windows from the sums of its documents' deviations: for normal
    documents the standard deviation of ``resampled_means``. In the unit of ``values``; 0 for a single document."""
    _, group, sizes = documents.unique(return_inverse=True, return_counts=True)
    deviations = values.double() - values.double().mean(-1, keepdim=True)
    sums = deviations.new_zeros(len(values), len(sizes)).index_add_(1, group, deviations)
    return sums.square().sum(-1).mul(len(sizes) / max(1, len(sizes) - 1)).sqrt() / values.shape[-1]


def independent(values: Float[Tensor, "*rows batch"]) -> Int[Tensor, "batch"]:
    """Every window a document of its own: for windows that share nothing, such as random tokens."""
    return torch.arange(values.shape[-1])
