"""Trajectories of the losses on single tokens."""

import math

import pytest
import torch

from pathsum.statistics.trajectories import principal_components
from tests import handmade

ROWS, COLUMNS = 11, 101


def test_all_components_together_keep_every_distance() -> None:
    """Identity: squared distances equal mean squared differences of losses, and explained shares add up to 1."""
    losses = handmade.normal(torch.Generator().manual_seed(1), ROWS, COLUMNS)
    found = principal_components(losses, ROWS - 1)
    for a in range(ROWS):
        expected = (losses - losses[a]).square().mean(-1)
        torch.testing.assert_close((found.coordinates - found.coordinates[a]).square().sum(-1), expected)
    assert found.explained.sum().item() == pytest.approx(1, abs=1e-12)
    assert (found.explained.diff() <= 0).all()


def test_a_path_that_turns_once_turns_at_that_checkpoint() -> None:
    """Known answer: the losses of one half of the tokens fall up to checkpoint 6, and those of the other half after it.

    Two components explain everything. Both legs of the path are straight and at right angles.
    """
    losses = torch.full((ROWS, COLUMNS), 4.0, dtype=torch.float64)
    losses[:, :50] -= torch.arange(ROWS).clamp(max=6)[:, None] / 3
    losses[:, 50:] -= (torch.arange(ROWS) - 6).clamp(min=0)[:, None] / 2
    found = principal_components(losses, 2)
    assert found.explained.sum().item() == pytest.approx(1, abs=1e-12)
    steps = found.coordinates.diff(dim=0)
    steps = steps / steps.norm(dim=-1, keepdim=True)
    cosines = (steps[1:] * steps[:-1]).sum(-1)
    assert cosines.tolist() == pytest.approx([1, 1, 1, 1, 1, 0, 1, 1, 1], abs=1e-12)


def test_a_path_that_goes_straight_has_one_component() -> None:
    """Negative control: if all losses fall in proportion, the first component explains everything."""
    losses = 5 - torch.linspace(0, 1, ROWS, dtype=torch.float64)[:, None] * torch.rand(
        COLUMNS, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )
    found = principal_components(losses, 2)
    assert found.explained[1] < 1e-24
    assert found.explained[0].item() == pytest.approx(1, abs=1e-12)


def test_the_sign_is_that_of_the_largest_coordinate() -> None:
    losses = handmade.normal(torch.Generator().manual_seed(3), ROWS, COLUMNS)
    found = principal_components(losses, 3)
    mirrored = principal_components(2 * losses.mean(0) - losses, 3)  # every loss on the other side of its mean
    torch.testing.assert_close(found.coordinates, mirrored.coordinates)
    assert (found.coordinates.max(0).values >= -found.coordinates.min(0).values).all()
    size = found.coordinates.square().sum() / (losses - losses.mean(0)).square().sum() * COLUMNS
    assert size.item() == pytest.approx(found.explained.sum().item(), abs=1e-12)
    assert math.isfinite(size)


def test_a_model_that_does_not_move_explains_nothing_and_too_few_checkpoints_are_refused() -> None:
    found = principal_components(torch.ones(ROWS, COLUMNS), 2)
    assert found.coordinates.abs().max() == 0
    assert found.explained.tolist() == [0, 0]
    with pytest.raises(ValueError, match="more than k = 2 checkpoints and at least as many tokens, got 2 × 101"):
        principal_components(torch.ones(2, COLUMNS), 2)
