"""The bands in the figure of the loss by position are what the in-context loss drop reads."""

from __future__ import annotations

import pytest
import torch

from pathsum.behavior.in_context import LONG_CONTEXT, in_context_loss_drop
from pathsum.report.themes.phase_change import loss_drop_ends


def _reads(n: int) -> list[int]:
    """Return the tokens whose loss changes the in-context loss drop of windows of ``n`` predictions."""
    losses = torch.eye(n, dtype=torch.float64)
    return [position + 1 for position in range(n) if in_context_loss_drop(losses[position])]


@pytest.mark.parametrize("n", [64, 256, LONG_CONTEXT - 1, LONG_CONTEXT, 2048])
def test_the_gray_bands_are_the_positions_of_the_loss_drop(n: int) -> None:
    bands = loss_drop_ends(n)
    inside = [p for p in range(1, n + 1) if any(low <= p <= high for low, high in bands)]
    read = _reads(n)
    assert len(set(read) ^ set(inside)) <= 2 if n < LONG_CONTEXT else read == inside  # fractions of n are rounded
