"""The loss drop of single windows compares the positions that the loss drop of a mean over windows compares."""

import pytest
import torch

from pathsum.behavior.in_context import in_context_loss_drop
from pathsum.behavior.loss_drops import loss_drops, positions
from tests.handmade import normal


@pytest.mark.parametrize("n", [8, 23, 256, 510, 511, 601])
def test_the_drop_of_each_window_is_early_minus_late(n: int) -> None:
    losses = normal(torch.Generator().manual_seed(n), 7, n)
    early, late = positions(n)
    by_hand = losses[:, early].mean(1) - losses[:, late].mean(1)
    torch.testing.assert_close(loss_drops(losses), by_hand, rtol=0, atol=1e-12)
    assert loss_drops(losses).mean().item() == pytest.approx(in_context_loss_drop(losses.mean(0)), abs=1e-12)
    assert early.stop <= late.start
