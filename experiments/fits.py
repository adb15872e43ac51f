"""Fit straight lines with 95 % intervals: by least squares, or by likelihood if some values are lower bounds."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, stdtrit

DRAWS, STEPS = 4000, 300  # number of simulated data sets for an interval; steps of expectation maximization


def slopes(y: np.ndarray, *x: np.ndarray) -> list[tuple[float, float, float]]:
    """Return the slope of ``y`` in each of ``x``, by least squares with an intercept, as (value, low, high).

    The interval is the 95 % interval of Student's t. Raises ValueError if there are too few measurements.
    """
    X = np.stack([np.ones(len(y)), *x], 1)
    if (freedom := len(y) - X.shape[1]) < 1:
        raise ValueError(f"expected more than {X.shape[1]} measurements for {len(x)} slopes, got {len(y)}")
    b, *_ = np.linalg.lstsq(X, y, rcond=None)
    variance = float(((y - X @ b) ** 2).sum()) / freedom
    half = stdtrit(freedom, 0.975) * np.sqrt(np.diag(variance * np.linalg.inv(X.T @ X)))
    return [(float(c), float(c - h), float(c + h)) for c, h in zip(b, half, strict=True)][1:]


def censored_line(x: np.ndarray, y: np.ndarray, censored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit y = a + b x with normal errors by maximum likelihood. Values of ``y`` at ``censored`` are lower bounds (Tobin
    1958).

    Return (a, b) with shape (…, 2), and the standard deviation of the errors with shape (…, 1). Leading dimensions of
    ``y`` are separate lines. Expectation maximization replaces each lower bound by the mean and variance of the values
    above it.
    """
    X = np.stack([np.ones_like(x), x], 1)
    to_line, filled, beyond = np.linalg.pinv(X).T, y, np.zeros(y.shape)
    for _ in range(STEPS):
        line = filled @ to_line
        found = line @ X.T
        spread = np.sqrt(((filled - found) ** 2 + beyond).mean(-1, keepdims=True))
        z = (y - found) / np.maximum(spread, 1e-12)
        hazard = np.exp(-(z**2) / 2 - log_ndtr(-z)) / np.sqrt(2 * np.pi)
        filled = np.where(censored, found + spread * hazard, y)
        beyond = np.where(censored, spread**2 * (1 + z * hazard - hazard**2), 0.0)
    return line, spread


def predicted(
    x: np.ndarray, y: np.ndarray, censored: np.ndarray, at: float
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return the slope of ``y`` in ``x``, and the prediction of one further ``y`` at x = ``at``.

    Each is (value, low, high) with a 95 % interval. Values of ``y`` at ``censored`` are lower bounds. The intervals
    come from simulated measurements around the fitted line, censored at the largest lower bound. Without lower bounds
    they agree with the intervals of Student's t.
    """
    (line, spread), rng = censored_line(x, y, censored), np.random.default_rng(0)
    drawn = line @ np.stack([np.ones_like(x), x]) + spread * rng.standard_normal((DRAWS, len(x)))
    given_up = y[censored].max() if censored.any() else np.inf
    lines, spreads = censored_line(x, np.minimum(drawn, given_up), drawn > given_up)
    new = np.array([1.0, at])
    middle = float(line @ new)
    more = middle + spread * rng.standard_normal(DRAWS) - lines @ new
    low, high = np.quantile(more / spreads[:, 0], (0.025, 0.975)) * spread
    under, over = np.quantile((line[1] - lines[:, 1]) / spreads[:, 0], (0.025, 0.975)) * spread
    return (float(line[1]), float(line[1] + under), float(line[1] + over)), (middle, middle + low, middle + high)
