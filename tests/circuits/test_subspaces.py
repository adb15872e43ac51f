"""Subspaces that heads write to and read from."""

import pytest
import torch

from pathsum.circuits.subspaces import effective_rank, overlap, overlaps
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head
from tests import handmade

D_MODEL = 13


def rotated(head: Head, R: torch.Tensor) -> Head:
    """Return the head with its writes rotated at random."""
    return Head(head.W_Q, head.W_K, head.W_V, R @ head.W_O)


def haar(generator: torch.Generator) -> torch.Tensor:
    Q, R = torch.linalg.qr(handmade.normal(generator, D_MODEL, D_MODEL))
    return Q * R.diagonal().sign()


def test_singular_vectors_of_a_thin_product_are_its_own() -> None:
    W = handmade.random_weights(seed=1, n_layers=1).layers[0][0].W_OV
    U, S, V_T = W.svd()
    torch.testing.assert_close((U * S) @ V_T, W.dense(), rtol=0, atol=1e-12)
    torch.testing.assert_close(S, W.singular_values(), rtol=0, atol=1e-12)
    torch.testing.assert_close(U.mT @ U, torch.eye(5, dtype=torch.float64), rtol=0, atol=1e-12)


def test_the_effective_rank_counts_directions_in_use() -> None:
    eye = torch.eye(D_MODEL, dtype=torch.float64)
    assert effective_rank(LowRank(eye[:, :5], eye[:5])) == pytest.approx(5, abs=1e-12)
    assert effective_rank(LowRank(eye[:, :2] * torch.tensor([1.0, 3.0]), eye[:2])) == pytest.approx(100 / 82, abs=1e-12)
    assert effective_rank(LowRank(0 * eye[:, :5], eye[:5])) == 0


def test_an_induction_head_reads_earlier_writes_through_its_keys_and_a_virtual_head_through_its_values() -> None:
    found = {o.kind: o for o in overlaps(handmade.induction_pair(11))}
    assert {kind: o.share for kind, o in found.items()} == pytest.approx({"Q": 0, "K": 1, "V": 0}, abs=1e-12)
    assert {o.chance for o in found.values()} == {0.5}  # 11 of 22 directions
    found = {o.kind: o for o in overlaps(handmade.virtual_head(11))}
    assert found["V"].share == pytest.approx(1, abs=1e-12)
    assert (found["K"].share, found["K"].chance, found["K"].spread) == (0, 0, 0)  # it has no keys


def test_gains_play_no_part_in_what_is_read() -> None:
    """A direction counts as read however small its singular value is."""
    early, late = (handmade.random_weights(seed=s, n_layers=1).layers[0][0] for s in (1, 2))
    gains = torch.diag(torch.tensor([1.0, 1e-3, 1e3, 10.0, 0.1], dtype=torch.float64))
    same = Head(late.W_Q, gains @ late.W_K, gains @ late.W_V, late.W_O)
    for kind in "KV":
        assert overlap(early, same, kind)[0] == pytest.approx(overlap(early, late, kind)[0], abs=1e-9)


def test_mean_and_spread_under_random_rotations_are_as_said() -> None:
    """Negative control: the standard error is spread/√n for the mean, and about spread/√(2n) for the spread."""
    early, late = (handmade.random_weights(seed=s, n_layers=1).layers[0][0] for s in (1, 2))
    g, n = torch.Generator().manual_seed(3), 2000
    draws = torch.tensor([overlap(rotated(early, haar(g)), late, "V")[0] for _ in range(n)])
    _, chance, spread = overlap(early, late, "V")
    assert chance == pytest.approx(5 / 13, abs=1e-12)
    assert abs(draws.mean().item() - chance) < 4 * spread / n**0.5
    assert draws.std().item() == pytest.approx(spread, rel=4 / (2 * n) ** 0.5)


def test_a_head_that_writes_everywhere_alike_overlaps_exactly_by_chance() -> None:
    """The spread is 0, because no rotation changes the overlap."""
    eye = torch.eye(D_MODEL, dtype=torch.float64)
    late = handmade.random_weights(seed=2, n_layers=1).layers[0][0]
    share, chance, spread = overlap(Head(eye, eye, eye, eye), late, "Q")
    assert share == pytest.approx(chance, abs=1e-12)
    assert spread == pytest.approx(0, abs=1e-9)


def test_every_pair_of_layers_in_order_is_compared() -> None:
    assert overlaps(handmade.random_weights(seed=0, n_layers=1)) == []
    found = overlaps(handmade.random_weights(seed=0, n_layers=3, n_heads=2))
    assert len(found) == 3 * 3 * 4
    assert all(o.early[0] < o.late[0] for o in found)
