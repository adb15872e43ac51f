"""The law of onsets: tokens until induction heads form, by what the text offers to them (docs/framework.md §6.8)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from pathsum.records.onsets import TextOnsets

LEAST = 4  # texts, with which the line has two degrees of freedom left
NOTHING = 1e-4  # nats; a text that offers less is treated as if it offered this


@dataclass(frozen=True)
class Forecast:
    """The onset to expect, with a 95 % prediction interval; tokens."""

    tokens: float
    low: float
    high: float

    def holds(self, text: TextOnsets) -> bool:
        """Return whether the interval has the onset of ``text`` or, where none was expected within its training, it has
        none."""
        if self.tokens > text.tokens:
            return text.onset is None
        return text.onset is not None and self.low <= text.onset <= self.high


@dataclass(frozen=True)
class Law:
    """log(onset / √(batch · n_ctx)) = intercept + slope · log(saving), and what an interval needs."""

    intercept: float
    slope: float
    spread: float  # standard deviation of a text about the line
    texts: int
    center: float  # mean of log(saving)
    squares: float  # sum of the squared deviations from it

    def forecast(self, text: TextOnsets) -> Forecast:
        """Return the onset to expect on a text that was not part of the fit."""
        x = np.log(max(text.saving_nats, NOTHING))
        error = self.spread * np.sqrt(1 + 1 / self.texts + (x - self.center) ** 2 / self.squares)
        middle = self.intercept + self.slope * x + 0.5 * np.log(text.batch * text.n_ctx)
        half = stdtrit(self.texts - 2, 0.975) * error
        return Forecast(*(float(np.exp(middle + side * half)) for side in (0, -1, 1)))


def fit(texts: Sequence[TextOnsets]) -> Law | None:
    """Fit the line by least squares to the texts with an onset, at the plain loss. Return None if there are fewer than
    LEAST, or if all offer the same."""
    used = [text for text in texts if text.onset and text.repeat_weight == 1]
    x = np.log([max(text.saving_nats, NOTHING) for text in used])
    y = np.log([(text.onset or 0) / np.sqrt(text.batch * text.n_ctx) for text in used])
    if len(used) < LEAST or np.ptp(x) == 0:
        return None
    slope, intercept = np.polyfit(x, y, 1)
    spread = np.sqrt(np.square(y - slope * x - intercept).sum() / (len(used) - 2))
    squares = np.square(x - x.mean()).sum()
    return Law(float(intercept), float(slope), float(spread), len(used), float(x.mean()), float(squares))


def forecast(text: TextOnsets, known: Sequence[TextOnsets]) -> Forecast | None:
    """Return the forecast for ``text`` by the law of the other texts; None if they are too few."""
    law = fit([other for other in known if not other.is_text_of(text)])
    return law.forecast(text) if law else None
