"""Change points of developmental curves (ICL "the phase change", docs/framework.md §6.3 and §6.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.statistics.bootstrap import ENDS

LEAST_BENT = 12  # evaluations needed to tell a bend from noise
CLEAR = 12.0  # n log(RSS₁ / RSS₂): exceeded by white noise of LEAST_BENT evaluations or more in under 1 % of curves
KNOWN = 0.95  # share of draws that must have a change point
LEAST_RISE = 0.2  # of prefix matching: heads that form reach 0.3 and more, those that do not stay under 0.1


@dataclass(frozen=True)
class Onset:
    """The change point of a developmental curve."""

    tokens_seen: int  # interpolated where a rise is half-way
    low: int  # the last evaluation before
    high: int  # the first one after


def onset(tokens_seen: Sequence[int], series: Sequence[float], least_rise: float = LEAST_RISE) -> Onset | None:
    """Return the tokens seen when the series last crosses half of its rise from the first to the last evaluation, by
    linear interpolation, with the evaluations on either side as bounds (docs/framework.md §6.3).

    None where the rise is under ``least_rise``, in the unit of the series. For a series that falls, give its negative.
    ValueError where the lengths differ, tokens do not increase or a value is not finite."""
    _check(tokens_seen, series)
    rise = series[-1] - series[0]
    if rise < least_rise or rise <= 0:
        return None
    half = series[0] + rise / 2
    last_below = max(i for i, value in enumerate(series) if value < half)
    (low, high), (a, b) = tokens_seen[last_below : last_below + 2], series[last_below : last_below + 2]
    return Onset(round(low + (high - low) * (half - a) / (b - a)), low, high)


def bend(tokens_seen: Sequence[int], losses: Sequence[float]) -> Onset | None:
    """Return the evaluation at which the slope of a loss becomes steeper: the best fit of two straight lines that meet,
    over the logarithm of tokens (docs/framework.md §6.4), with the evaluations on either side.

    None where one line fits nearly as well (n log(RSS₁ / RSS₂) < CLEAR, calibrated for independent errors), where the
    loss becomes flatter, or with fewer than LEAST_BENT evaluations. A decaying learning rate bends a loss too: compare
    with models that cannot change. ValueError as for ``onset``, and where no token is seen."""
    _check(tokens_seen, losses)
    if tokens_seen[0] < 1:
        raise ValueError("expected some tokens seen at every evaluation, for their logarithm; leave out the first")
    if len(losses) < LEAST_BENT:
        return None
    x, y = torch.tensor(tokens_seen, dtype=torch.float64).log(), torch.tensor(losses, dtype=torch.float64)
    line = torch.linalg.qr(torch.stack([torch.ones_like(x), x], 1)).Q
    at = range(2, len(x) - 2)  # each line passes through three evaluations or more
    hinges = torch.stack([(x - x[k]).clamp(min=0) for k in at], 1)
    left, hinges = y - line @ (line.mT @ y), hinges - line @ (line.mT @ hinges)
    bent = hinges.mT @ left
    gain = bent.square() / hinges.square().sum(0)
    best = int(gain.argmax())
    before = left.square().sum().item()
    after = before - gain[best].item()
    if bent[best] >= 0 or before <= 1e-20 * y.square().sum().item():  # an exact line leaves rounding only
        return None
    if after > 0 and len(x) * math.log(before / after) < CLEAR:
        return None
    return Onset(*(tokens_seen[at[best] + i] for i in (0, -1, 1)))


def change_interval(
    find: Callable[[Sequence[int], Sequence[float]], Onset | None],
    tokens_seen: Sequence[int],
    drawn: Float[Tensor, "rows n"],
) -> tuple[int, int] | None:
    """Compute the 95 % percentile interval of the change point that ``find`` returns, over the columns of ``drawn``:
    each is a curve with one row per evaluation (docs/framework.md §6.5). None where fewer than KNOWN of the curves
    change. Costs one ``find`` per draw."""
    points = [change.tokens_seen for curve in drawn.mT.tolist() if (change := find(tokens_seen, curve)) is not None]
    if not points or len(points) < KNOWN * drawn.shape[1]:
        return None
    low, high = torch.quantile(torch.tensor(points, dtype=torch.float64), ENDS).round().long().tolist()
    return low, high


def _check(tokens_seen: Sequence[int], series: Sequence[float]) -> None:
    if len(tokens_seen) != len(series) or len(series) < 2:
        raise ValueError(
            f"expected two evaluations or more, with tokens and a value each, got {len(tokens_seen)} and {len(series)}"
        )
    if any(b <= a for a, b in pairwise(tokens_seen)) or not all(map(math.isfinite, series)):
        raise ValueError(
            "expected increasing tokens seen and finite values; sort the evaluations, and drop broken ones"
        )
