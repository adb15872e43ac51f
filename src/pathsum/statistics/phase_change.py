"""Find change points of curves over training (docs/framework.md §6.3 and §6.4). RSS is a residual sum of squares: RSS₁
of the best fit of one straight line, RSS₂ of two lines that meet."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.statistics.bootstrap import widened

LEAST_BENT = 12  # evaluations needed to tell a bend from noise
CLEAR = 12.0  # smallest n log(RSS₁ / RSS₂) of a bend; exceeded by under 1 % of white-noise curves
KNOWN = 0.95  # share of bootstrap draws that must have a change point
LEAST_RISE = 0.2  # of prefix matching; induction heads reach 0.3 or more, other heads stay below 0.1


@dataclass(frozen=True)
class Onset:
    """A change point of a curve over training, in tokens seen."""

    tokens_seen: int  # at the change; ``onset`` interpolates between evaluations
    low: int  # at the last evaluation before the change
    high: int  # at the first evaluation after it


def onset(tokens_seen: Sequence[int], series: Sequence[float], least_rise: float = LEAST_RISE) -> Onset | None:
    """Return the tokens seen when a series crosses, for the last time, half of its rise from the first to the last
    evaluation.

    The crossing is interpolated linearly, and the evaluations on either side are its bounds. None if the rise is not
    positive or is below ``least_rise``, in the unit of the series. For a series that falls, pass its negative.
    ValueError with fewer than two evaluations, if the lengths differ, if the tokens do not increase, or if a value is
    not finite. See docs/framework.md §6.3."""
    _check(tokens_seen, series)
    rise = series[-1] - series[0]
    if rise < least_rise or rise <= 0:
        return None
    half = series[0] + rise / 2
    last_below = max(i for i, value in enumerate(series) if value < half)
    (low, high), (a, b) = tokens_seen[last_below : last_below + 2], series[last_below : last_below + 2]
    return Onset(round(low + (high - low) * (half - a) / (b - a)), low, high)


def bend(tokens_seen: Sequence[int], losses: Sequence[float]) -> Onset | None:
    """Return the evaluation at which a loss, as a function of log tokens, becomes steeper (docs/framework.md §6.4).

    It is the meeting point of the two straight lines that fit best, with the evaluations on either side as bounds. None
    if the loss becomes flatter, if the number n of evaluations is below LEAST_BENT (12), or if one line fits nearly as
    well: n log(RSS₁ / RSS₂) < CLEAR (12), with the residual sums of squares of one line and of two. CLEAR is calibrated
    for independent errors. A decaying learning rate bends a loss too, so compare with models that cannot form induction
    heads. ValueError as in ``onset``, and if no token is seen at the first evaluation."""
    _check(tokens_seen, losses)
    if tokens_seen[0] < 1:
        raise ValueError(
            "expected at least one token seen at every evaluation (for its logarithm); leave out the first"
        )
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
    if bent[best] >= 0 or before <= 1e-20 * y.square().sum().item():  # an exact line: only rounding is left
        return None
    if after > 0 and len(x) * math.log(before / after) < CLEAR:
        return None
    return Onset(*(tokens_seen[at[best] + i] for i in (0, -1, 1)))


def change_interval(
    find: Callable[[Sequence[int], Sequence[float]], Onset | None],
    tokens_seen: Sequence[int],
    found: Onset,
    drawn: Float[Tensor, "rows n"],
    documents: Int[Tensor, "batch"],
) -> tuple[int, int] | None:
    """Return the 95 % interval of the change point ``found``, in tokens seen, from bootstrap draws of its curve.

    Each column of ``drawn`` is one draw of ``documents``, with a row per evaluation, and ``find`` returns its change
    point or None. The interval is over the draws that have a change point, and ends at the first and the last
    evaluation. It is None if the share of these draws is below KNOWN (0.95). Errors as in ``find``. See
    docs/framework.md §6.5 and §10.1."""
    points = [change.tokens_seen for curve in drawn.mT.tolist() if (change := find(tokens_seen, curve)) is not None]
    if not points or len(points) < KNOWN * drawn.shape[1]:
        return None
    at = torch.tensor(found.tokens_seen, dtype=torch.float64)
    ends = widened(at, torch.tensor(points, dtype=torch.float64), documents)
    low, high = ends.clamp(tokens_seen[0], tokens_seen[-1]).round().long().tolist()
    return low, high


def _check(tokens_seen: Sequence[int], series: Sequence[float]) -> None:
    if len(tokens_seen) != len(series) or len(series) < 2:
        raise ValueError(
            f"expected at least two evaluations, each with its tokens seen and a value, got {len(tokens_seen)} and "
            f"{len(series)}"
        )
    if any(b <= a for a, b in pairwise(tokens_seen)) or not all(map(math.isfinite, series)):
        raise ValueError(
            "expected increasing tokens seen and finite values; sort the evaluations, and drop broken ones"
        )
