"""The onset of prefix matching, and the bend of the loss."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch

from pathsum.statistics.bootstrap import independent, resampled_means
from pathsum.statistics.phase_change import LEAST_BENT, Onset, bend, change_interval, onset
from tests.handmade import normal

Find = Callable[[Sequence[int], Sequence[float]], Onset | None]


def test_the_phase_change_is_where_half_of_the_rise_is_crossed() -> None:
    """From 0.1 to 0.9: the middle, 0.5, is a quarter of the way from 0.3 to 1.1."""
    assert onset([0, 10, 20, 40, 80], [0.1, 0.0, 0.3, 1.1, 0.9]) == Onset(tokens_seen=25, low=20, high=40)
    assert onset([0, 10, 20], [0.0, 0.5, 1.0]) == Onset(tokens_seen=10, low=0, high=10)  # at an evaluation
    lost_again = [0.0, 0.6, 0.0, 0.0, 1.0, 1.0]
    assert onset([0, 1, 2, 3, 4, 5], lost_again) == Onset(tokens_seen=4, low=3, high=4)


def test_a_sigmoid_s_onset_is_its_middle() -> None:
    """Calibration: evaluations every 10 around 503, with a tolerance for the curvature within one interval."""
    tokens = list(range(0, 1001, 10))
    found = onset(tokens, [0.05 + 0.6 / (1 + math.exp(-(t - 503) / 20)) for t in tokens])
    assert found is not None
    assert abs(found.tokens_seen - 503) <= 1
    assert (found.low, found.high) == (500, 510)


def test_without_a_rise_there_is_no_phase_change() -> None:
    """Negative control: a flat series, a falling series, and a rise that is too small."""
    for series in ([0.1, 0.1, 0.1], [0.9, 0.5, 0.1], [0.0, 0.1, 0.19], [0.0, 0.9, 0.1]):
        assert onset([0, 10, 20], series) is None
    assert onset([0, 10, 20], [0.0, 0.1, 0.19], least_rise=0.1) is not None
    assert onset([0, 10, 20], [0.0, 0.0, 0.0], least_rise=0.0) is None


@pytest.mark.parametrize(
    ("find", "tokens", "series", "said"),
    [
        (onset, [0, 1, 2], [0.0, 1.0], "got 3 and 2"),
        (onset, [0, 2, 2], [0.0, 0.5, 1.0], "increasing tokens seen and finite values"),
        (onset, [0, 1, 2], [0.0, math.nan, 1.0], "increasing tokens seen and finite values"),
        (bend, [1, 2, 2], [3.0, 2.0, 1.0], "increasing tokens seen and finite values"),
        (bend, [0, 1, 2], [3.0, 2.0, 1.0], "at least one token seen at every evaluation"),
    ],
)
def test_broken_curves_are_refused(find: Find, tokens: list[int], series: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        find(tokens, series)


# ---- bends ----------------------------------------------------------------------------------------------------------

EVERY = range(1000, 20_001, 1000)


def test_a_loss_that_turns_down_bends_where_it_turns() -> None:
    """Calibration: two lines over log tokens that meet at 7000, also with noise of a tenth of the step."""
    exact = [4.0 - 0.2 * math.log(t) - 0.8 * max(0.0, math.log(t / 7000)) for t in EVERY]
    assert bend(EVERY, exact) == Onset(tokens_seen=7000, low=6000, high=8000)
    for noise in (0.01 * normal(torch.Generator().manual_seed(seed), len(EVERY)) for seed in range(20)):
        found = bend(EVERY, [a + b for a, b in zip(exact, noise.tolist(), strict=True)])
        assert found is not None
        assert abs(found.tokens_seen - 7000) <= 2000


def test_no_bend_is_seen_in_noise_nor_in_a_loss_that_flattens() -> None:
    """Negative control: white noise bends in less than 1 % of curves of any length, a line or a power law in none."""
    for n in (LEAST_BENT, 31):
        curves = normal(torch.Generator().manual_seed(n), 1000, n).tolist()
        tokens = range(100, 100 * (n + 1), 100)
        assert sum(bend(tokens, curve) is not None for curve in curves) < 10
    assert bend(EVERY, [4.0 - 0.3 * math.log(t) for t in EVERY]) is None
    assert bend(EVERY, [2.0 + 50 * t**-0.5 for t in EVERY]) is None
    assert bend(EVERY, [3.0] * len(EVERY)) is None
    few = EVERY[: LEAST_BENT - 1]  # too few evaluations
    assert bend(few, [4.0 - max(0, t - 5000) for t in few]) is None


# ---- intervals ------------------------------------------------------------------------------------------------------


def test_the_interval_over_documents_covers_the_change_of_all_documents() -> None:
    """Calibration: the changes of single documents are spread by 100 around 1000, and the mean curve changes at 1000.

    Intervals from sixteen documents contain 1000 in nearly 95 % of samples, with a width of about 2 · 100 / √16 on
    either side.
    """
    tokens = range(0, 2001, 50)
    covered, width = 0, 0
    for seed in range(100):
        g = torch.Generator().manual_seed(seed)
        at = 1000 + 100 * normal(g, 16)
        curves = torch.sigmoid((torch.tensor(tokens, dtype=torch.float64)[:, None] - at) / 100)
        of, at_all = independent(curves), onset(tokens, curves.mean(1).tolist())
        assert at_all is not None
        found = change_interval(onset, tokens, at_all, resampled_means(curves, of, g, 200), of)
        assert found is not None
        covered += found[0] <= 1000 <= found[1]
        width += found[1] - found[0]
    assert 86 <= covered <= 99
    assert 70 < width / 100 < 140


def test_a_change_that_hangs_on_one_document_has_no_interval() -> None:
    """Negative control: the rise of one curve in four makes the whole change, and a quarter to a third of draws miss
    it."""
    tokens, flat = [0, 10, 20], [0.0, 0.0, 0.0]
    curves = torch.tensor([flat, flat, flat, [0.0, 0.5, 1.0]], dtype=torch.float64).mT
    of = independent(curves)
    drawn = resampled_means(curves, of, torch.Generator().manual_seed(0), 200)
    found = onset(tokens, curves.mean(1).tolist())
    assert found is not None
    assert change_interval(onset, tokens, found, drawn, of) is None
    assert change_interval(onset, tokens, found, torch.zeros(3, 7, dtype=torch.float64), of) is None


def test_the_interval_of_a_change_stays_within_the_evaluations() -> None:
    """Two documents that change at the first and at the last interval: the widened interval would end before 0."""
    tokens = [0, 10, 20, 30]
    curves = torch.tensor([[0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]], dtype=torch.float64).mT
    of, found = independent(curves), onset(tokens, curves.mean(1).tolist())
    assert found is not None
    drawn = resampled_means(curves, of, torch.Generator().manual_seed(0), 200)
    assert change_interval(onset, tokens, found, drawn, of) == (0, 30)
