"""The in-context loss drop at the positions of Olsson et al. 2022 (docs/framework.md §6.2)."""

import pytest
import torch

from pathsum.behavior.icl_positions import icl_loss_drop, icl_positions
from pathsum.behavior.in_context import in_context_loss_drop


@pytest.mark.parametrize(("n", "late"), [(75, 70), (255, 250), (256, 250), (504, 490), (511, 500), (1023, 500)])
def test_the_late_end_is_the_500th_token_or_the_last_round_one(n: int, late: int) -> None:
    """In windows of 256 tokens, 50 ± 5 is compared with 250 ± 5."""
    assert icl_positions(n) == (50, late)
    straight = [7.0 - 0.002 * token for token in range(1, n + 1)]
    assert icl_loss_drop(straight) == pytest.approx(0.002 * (late - 50), abs=1e-12)


@pytest.mark.parametrize("n", [1, 50, 60, 74])
def test_ends_that_overlap_are_none(n: int) -> None:
    assert icl_positions(n) is None
    assert icl_loss_drop([1.0] * n) is None


def test_a_loss_that_falls_early_drops_less_here_than_between_wide_ends() -> None:
    """Guards against comparing the drop from tokens 21 to 31 on with the paper's drop from the 50th token on."""
    losses = 3 + 2 * (torch.arange(1, 257, dtype=torch.float64)) ** -0.5
    ours, icl = in_context_loss_drop(losses), icl_loss_drop(losses.tolist())
    assert icl is not None
    assert ours > 1.5 * icl > 0


@pytest.mark.parametrize("n", [511, 700])
def test_in_a_long_context_both_are_the_paper_s(n: int) -> None:
    losses = torch.rand(n, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert icl_loss_drop(losses.tolist()) == pytest.approx(in_context_loss_drop(losses), abs=1e-12)
