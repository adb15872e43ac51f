"""How well is a mean over windows known?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

DRAWS = 2000


@dataclass(frozen=True)
class Interval:
    """A mean, and the percentile interval of its bootstrap."""

    mean: float
    low: float
    high: float


def mean_intervals(
    values: Float[Tensor, "rows batch"], generator: torch.Generator, level: float = 0.95, draws: int = DRAWS
) -> list[Interval]:
    """Between which bounds does each row's mean lie, had other windows been drawn? Percentile bootstrap over the last
    axis (Efron 1979).

    In the unit of ``values``. All rows share the draws, so that two rows which differ by a constant keep that
    difference. Under some ten windows the interval is a little too narrow: by √(1 − 1/batch) and by the normal's tail.
    Costs rows · batch · draws. ValueError under two windows.
    """
    rows = len(values)
    ends = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    drawn = resampled_means(values, generator, draws)
    low, high = torch.quantile(drawn, ends, dim=-1) if rows else values.new_zeros(2, 0)
    means = values.double().mean(-1)
    return [Interval(*three) for three in torch.stack([means, low, high], -1).tolist()]


def resampled_means(
    values: Float[Tensor, "rows batch"], generator: torch.Generator, draws: int = DRAWS
) -> Float[Tensor, "rows n"]:
    """What might each row's mean have been, had other windows been drawn? One column a draw, the same draws for all
    rows. In the unit of ``values``, float64. Costs rows · batch · draws. ValueError under two windows."""
    batch = values.shape[1]
    if batch < 2:
        raise ValueError(f"expected at least two windows to draw from, got {batch}; measure on more")
    drawn = torch.randint(batch, (draws, batch), generator=generator)
    one = torch.full((draws, batch), 1 / batch, dtype=torch.float64)
    share = torch.zeros_like(one).scatter_add_(1, drawn, one)
    return values.double() @ share.mT
