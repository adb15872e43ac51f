"""When does in-context learning begin? (ICL "the phase change")"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

LEAST_RISE = 0.2  # of prefix matching: heads that form reach 0.3 and more, those that do not stay under 0.1


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
