"""When does in-context learning begin, and how strong is it? (ICL "the phase change")"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor

LEAST_RISE = 0.2  # of prefix matching: heads that form reach 0.3 and more, those that do not stay under 0.1
LONG_CONTEXT = 511  # predictions of a window of 512 tokens: room for the 500th
NEIGHBOURS = 5  # on either side of the 50th and of the 500th, against noise


@dataclass(frozen=True)
class Onset:
    """When a developmental curve is half-way."""

    tokens_seen: int  # interpolated
    low: int  # the last evaluation before
    high: int  # the first one after


def onset(tokens_seen: Sequence[int], series: Sequence[float], least_rise: float = LEAST_RISE) -> Onset | None:
    """When does the phase change come? Tokens seen when the series crosses half of its rise from the first to the last
    evaluation for good, by linear interpolation (ICL "the phase change").

    In tokens, with the evaluations on either side: the crossing is known no better than that. None where the rise is
    under ``least_rise``, in the series' unit: no phase change within these tokens. For a series that falls, give its
    negative. ValueError where the lengths differ, tokens do not increase or a value is not finite.
    """
    if len(tokens_seen) != len(series) or len(series) < 2:
        raise ValueError(
            f"expected two evaluations or more, with tokens and a value each, got {len(tokens_seen)} and {len(series)}"
        )
    if any(b <= a for a, b in pairwise(tokens_seen)) or not all(map(math.isfinite, series)):
        raise ValueError(
            "expected increasing tokens seen and finite values; sort the evaluations, and drop broken ones"
        )
    rise = series[-1] - series[0]
    if rise < least_rise or rise <= 0:
        return None
    half = series[0] + rise / 2
    last_below = max(i for i, value in enumerate(series) if value < half)
    (low, high), (a, b) = tokens_seen[last_below : last_below + 2], series[last_below : last_below + 2]
    return Onset(round(low + (high - low) * (half - a) / (b - a)), low, high)


def in_context_loss_drop(loss_by_position: Float[Tensor, "pos"]) -> float:
    """How much does the model learn from its context? Loss near the 50th token − loss near the 500th, in nats; positive
    where it learns (ICL "in-context learning score", its negative; FRAMEWORK §6).

    Entry i is the mean loss of predicting the token at i + 1. Each end is a mean over NEIGHBOURS on either side. In
    windows under 512 tokens: mean over [0.08, 0.12] · n_ctx − mean over the last tenth. ValueError under 8 positions.
    """
    n = len(loss_by_position)
    if n < 8:
        raise ValueError(f"expected the losses of at least 8 positions, got {n}; use a longer context")
    if n >= LONG_CONTEXT:
        early, late = (slice(at - 1 - NEIGHBOURS, at + NEIGHBOURS) for at in (50, 500))
    else:
        early = slice(int(0.08 * n), max(int(0.08 * n) + 1, math.ceil(0.12 * n)))
        late = slice(n - max(1, n // 10), n)
    return (loss_by_position[early].mean() - loss_by_position[late].mean()).item()
