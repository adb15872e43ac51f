"""When in-context learning begins, and how strong it is."""

from __future__ import annotations

import math

import pytest
import torch

from pathsum.circuits.phase_change import Onset, in_context_loss_drop, onset


def test_the_phase_change_is_where_half_of_the_rise_is_crossed() -> None:
    """From 0.1 to 0.9: 0.5 is a quarter of the way from 0.3 to 1.1."""
    assert onset([0, 10, 20, 40, 80], [0.1, 0.0, 0.3, 1.1, 0.9]) == Onset(tokens_seen=25, low=20, high=40)


def test_a_sigmoid_s_onset_is_its_middle() -> None:
    """Calibration: evaluated every 10 around 503, within the curvature of one interval."""
    tokens = list(range(0, 1001, 10))
    found = onset(tokens, [0.05 + 0.6 / (1 + math.exp(-(t - 503) / 20)) for t in tokens])
    assert found is not None
    assert abs(found.tokens_seen - 503) <= 1
    assert (found.low, found.high) == (500, 510)


def test_a_crossing_that_is_lost_again_is_not_the_phase_change() -> None:
    assert onset([0, 1, 2, 3, 4, 5], [0.0, 0.6, 0.0, 0.0, 1.0, 1.0]) == Onset(tokens_seen=4, low=3, high=4)


def test_without_a_rise_there_is_no_phase_change() -> None:
    """Negative control: flat, falling, and risen by less than asked for."""
    for series in ([0.1, 0.1, 0.1], [0.9, 0.5, 0.1], [0.0, 0.1, 0.19], [0.0, 0.9, 0.1]):
        assert onset([0, 10, 20], series) is None
    assert onset([0, 10, 20], [0.0, 0.1, 0.19], least_rise=0.1) is not None
    assert onset([0, 10, 20], [0.0, 0.0, 0.0], least_rise=0.0) is None


def test_an_onset_on_an_evaluation_is_that_evaluation() -> None:
    assert onset([0, 10, 20], [0.0, 0.5, 1.0]) == Onset(tokens_seen=10, low=0, high=10)


def test_broken_curves_are_refused() -> None:
    with pytest.raises(ValueError, match="got 3 and 2"):
        onset([0, 1, 2], [0.0, 1.0])
    with pytest.raises(ValueError, match="increasing tokens seen and finite values"):
        onset([0, 2, 2], [0.0, 0.5, 1.0])
    with pytest.raises(ValueError, match="increasing tokens seen and finite values"):
        onset([0, 1, 2], [0.0, math.nan, 1.0])


def test_the_loss_drop_is_from_the_50th_token_to_the_500th() -> None:
    """Entry i predicts token i + 1; on a straight line a window's mean is its middle."""
    losses = 7.0 - 0.002 * torch.arange(1, 513, dtype=torch.float64)
    assert in_context_loss_drop(losses) == pytest.approx(0.002 * 450, abs=1e-12)
    assert in_context_loss_drop(losses[:-1]) == pytest.approx(0.002 * 450, abs=1e-12)


@pytest.mark.parametrize("at", [44, 54, 489, 509])
def test_only_the_neighbours_of_both_tokens_count(at: int) -> None:
    for place in (at, at + (-1 if at in (44, 489) else 1)):
        losses = torch.zeros(512, dtype=torch.float64)
        losses[place] = 1
        inside = 44 <= place <= 54 or 494 <= place <= 504
        assert (in_context_loss_drop(losses) != 0) == inside


def test_in_a_short_window_the_ends_are_shares_of_it() -> None:
    """256 positions: 20 … 30 against 231 … 255."""
    losses = torch.rand(256, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = losses[20:31].mean() - losses[231:].mean()
    assert in_context_loss_drop(losses) == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("n_ctx", [8, 13, 256, 512, 1024])
def test_learning_from_context_is_positive_and_a_flat_loss_is_none(n_ctx: int) -> None:
    assert in_context_loss_drop(-torch.arange(n_ctx, dtype=torch.float64)) > 0
    assert in_context_loss_drop(torch.ones(n_ctx)) == 0


def test_a_window_too_short_for_two_ends_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 8 positions, got 7"):
        in_context_loss_drop(torch.ones(7))
