"""The in-context loss drop."""

import pytest
import torch

from pathsum.behavior.in_context import in_context_loss_drop


def test_the_loss_drop_is_from_the_50th_token_to_the_500th() -> None:
    """Entry i predicts token i + 1. On a straight line, the mean over neighbors is the value in the middle."""
    losses = 7.0 - 0.002 * torch.arange(1, 513, dtype=torch.float64)
    assert in_context_loss_drop(losses) == pytest.approx(0.002 * 450, abs=1e-12)
    assert in_context_loss_drop(losses[:-1]) == pytest.approx(0.002 * 450, abs=1e-12)


@pytest.mark.parametrize("at", [44, 54, 494, 504])
def test_only_the_neighbours_of_both_tokens_count(at: int) -> None:
    for place in (at, at + (-1 if at in (44, 494) else 1)):
        losses = torch.zeros(512, dtype=torch.float64)
        losses[place] = 1
        inside = 44 <= place <= 54 or 494 <= place <= 504
        assert (in_context_loss_drop(losses) != 0) == inside


def test_in_a_short_window_the_ends_are_shares_of_it() -> None:
    """With 256 positions, 20 … 30 are compared with 231 … 255."""
    losses = torch.rand(256, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = losses[20:31].mean() - losses[231:].mean()
    assert in_context_loss_drop(losses) == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("n_ctx", [8, 13, 256, 512, 1024])
def test_learning_from_context_is_positive_and_a_flat_loss_is_none(n_ctx: int) -> None:
    assert in_context_loss_drop(-torch.arange(n_ctx, dtype=torch.float64)) > 0
    assert in_context_loss_drop(torch.ones(n_ctx)) == 0
    with pytest.raises(ValueError, match="at least 8 positions, got 7"):
        in_context_loss_drop(torch.ones(7))
