"""Heads that delete what earlier layers wrote."""

import pytest
import torch

from pathsum.circuits.deleting import alignment, covariance, removed
from pathsum.core.lowrank import LowRank
from tests import handmade

D = 11


def writes(seed: int = 1) -> torch.Tensor:
    """Return writes in three windows of seven positions, with a non-zero mean and unequal variances over directions."""
    g = torch.Generator().manual_seed(seed)
    return 2 + handmade.normal(g, 3, 7, D) @ handmade.normal(g, D, D)


def test_a_deleting_head_is_told_from_a_copying_one() -> None:
    C = covariance(writes())
    for weights, sign in [(handmade.deleting_head(D), -1), (handmade.copying_head(D), 1)]:
        found = alignment(weights.layers[0][0].W_OV, C)
        assert found.value == pytest.approx(sign, abs=1e-12)
        assert 0 < found.spread < 0.5


def test_a_head_deletes_only_what_lies_where_it_reads() -> None:
    """The head is −1 on the first four directions: it deletes all that is written there, and nothing elsewhere."""
    eye = torch.eye(D, dtype=torch.float64)
    head = LowRank(-eye[:, :4], eye[:4])
    there, elsewhere = (torch.zeros(3, 7, D, dtype=torch.float64) for _ in range(2))
    there[..., :4], elsewhere[..., 4:] = writes()[..., :4], writes()[..., 4:]
    assert alignment(head, covariance(there)).value == pytest.approx(-1, abs=1e-12)
    nothing = alignment(head, covariance(elsewhere))
    assert (nothing.value, nothing.spread) == (0, 0)


def test_alignment_is_the_weighted_cosine_of_a_write_with_what_is_made_of_it() -> None:
    W = handmade.random_weights(seed=2, n_layers=1, d_model=D).layers[0][0].W_OV
    y = writes().flatten(0, 1)
    y = y - y.mean(0)
    made = y @ W.dense().mT
    expected = (made * y).sum() / (made.norm() * y.norm())
    assert alignment(W, covariance(writes())).value == pytest.approx(expected.item(), abs=1e-12)


def test_mean_and_spread_under_random_rotations_are_as_said() -> None:
    """Negative control: over 2000 rotations, within 4 standard errors."""
    W, C = handmade.random_weights(seed=2, n_layers=1, d_model=D).layers[0][0].W_OV, covariance(writes())
    g, n = torch.Generator().manual_seed(3), 2000
    Q, R = torch.linalg.qr(handmade.normal(g, n, D, D))
    rotations = Q * R.diagonal(0, -2, -1).sign().unsqueeze(-2)
    draws = torch.tensor([alignment(W.then(turn), C).value for turn in rotations])
    spread = alignment(W, C).spread
    assert abs(draws.mean().item()) < 4 * spread / n**0.5
    assert draws.std().item() == pytest.approx(spread, rel=4 / (2 * n) ** 0.5)


def test_a_head_that_writes_the_opposite_of_what_is_there_removes_its_share() -> None:
    y = writes()
    for share in (1.0, 0.25, -0.5):
        assert removed(7 - share * y, y) == pytest.approx(share, abs=1e-12)
    assert removed(y, torch.ones_like(y)) == 0
    y, o = (torch.zeros(3, 7, D, dtype=torch.float64) for _ in range(2))
    y[..., :4], o[..., 4:] = writes()[..., :4], writes()[..., 4:]
    assert removed(o, y) == 0
