"""Token clusters that a head copies, and the singular directions that it reads and writes."""

import pytest
import torch
from torch import Tensor

from pathsum.circuits.qk_ov import ov_circuit
from pathsum.circuits.token_clusters import Cluster, singular_directions, token_clusters
from pathsum.core.weights import Weights
from tests import handmade

D_VOCAB = 23
ALL = torch.arange(D_VOCAB)
GROUPS = ((3, 7, 11, 19), (2, 5, 13, 17))


def clusters(weights: Weights, vectors: int = 2, k: int = 4, sources: Tensor = ALL) -> list[Cluster]:
    W_OV = weights.layers[0][0].W_OV
    return token_clusters(weights, [W_OV], sources, vectors, k, torch.Generator().manual_seed(1))[0]


def grouping(strengths: tuple[float, float]) -> Weights:
    """Return a head in which each token of a group raises all other tokens of the group."""
    ov = torch.zeros(D_VOCAB, D_VOCAB, dtype=torch.float64)
    for group, strength in zip(GROUPS, strengths, strict=True):
        ov[torch.tensor(group)[:, None], torch.tensor(group)] = strength
    return handmade.skip_trigram_head(0 * ov, ov)


def test_tokens_that_raise_each_other_are_found_as_a_group() -> None:
    """The eigenvalue of a block of four is 4 times its strength, slightly less after centering over outputs."""
    first, second = clusters(grouping((1.0, 3.0)))
    assert (set(first.tokens.tolist()), set(second.tokens.tolist())) == (set(GROUPS[1]), set(GROUPS[0]))
    assert 4 * 3 * (1 - 4 / 23) - 0.5 < first.eigenvalue < 12
    assert first.cohesion > first.chance + 5 * first.spread
    assert clusters(handmade.deleting_head(D_VOCAB)) == []


def test_the_small_matrix_s_eigenvectors_are_those_of_the_whole_circuit() -> None:
    weights = handmade.random_weights(seed=2, n_layers=1)
    found = clusters(weights, vectors=5, k=23)
    whole = ov_circuit(weights, weights.layers[0][0].W_OV).dense()
    values, vectors = torch.linalg.eig(whole)
    for cluster in found:
        weight = vectors[:, (values - cluster.eigenvalue).abs().argmin()].real
        order = (weight * weight[weight.abs().argmax()].sign()).argsort(descending=True)
        assert cluster.tokens.tolist() == order.tolist()
    assert len(found) == int(((values.imag == 0) & (values.real > 1e-9)).sum()) > 0


def test_random_heads_have_no_groups_beyond_chance() -> None:
    """Negative control: the clusters of a random head are as cohesive as those of its random rotations."""
    found = [c for seed in range(41) for c in clusters(handmade.random_weights(seed, n_layers=1), vectors=1)]
    z = torch.tensor([(c.cohesion - c.chance) / c.spread for c in found])
    assert abs(z.mean().item()) < 4 * z.std().item() / len(z) ** 0.5
    assert z.std().item() < 2


def test_cohesion_is_the_mean_of_what_tokens_add_to_each_other() -> None:
    weights = handmade.random_weights(seed=2, n_layers=1)
    cluster = clusters(weights, vectors=1, k=3)[0]
    whole = ov_circuit(weights, weights.layers[0][0].W_OV).dense()
    pairs = [whole[i, j].item() for i in cluster.tokens for j in cluster.tokens if i != j]
    assert cluster.cohesion == pytest.approx(sum(pairs) / 6 / whole.square().mean().sqrt().item(), abs=1e-12)


def test_only_tokens_that_are_asked_for_are_named() -> None:
    some = ALL[ALL % 3 == 1]
    weights = handmade.random_weights(seed=2, n_layers=1)
    assert set(clusters(weights, sources=some)[0].tokens.tolist()) <= set(some.tolist())
    direction = singular_directions(weights, weights.layers[0][0].W_OV, some, 1, 3)[0]
    assert {*direction.read.tolist(), *direction.written.tolist()} <= set(some.tolist())


def test_singular_directions_tell_what_is_read_and_what_is_written() -> None:
    """Tokens 3, 7 and 11 raise 2, 5 and 13. Token 17 raises 19 with a smaller gain."""
    ov = torch.zeros(D_VOCAB, D_VOCAB, dtype=torch.float64)
    read, written = torch.tensor([3, 7, 11]), torch.tensor([2, 5, 13])
    ov[written[:, None], read] = torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64)
    ov[19, 17] = 1.0
    weights = handmade.skip_trigram_head(0 * ov, ov)
    first, second = singular_directions(weights, weights.layers[0][0].W_OV, ALL, 2, 3)
    assert first.read.tolist() == [3, 7, 11]
    assert set(first.written.tolist()) == {2, 5, 13}
    assert first.gain == pytest.approx((3 * 14) ** 0.5, abs=1e-12)
    assert first.share == pytest.approx(42 / 43, abs=1e-12)
    assert (second.read[0], second.written[0]) == (17, 19)
    still = handmade.copying_head(D_VOCAB, strength=0)
    assert singular_directions(still, still.layers[0][0].W_OV, ALL, 2, 3) == []


def test_a_direction_s_sign_does_not_depend_on_that_of_its_vectors() -> None:
    """Reading −x and writing −y is the same as reading x and writing y."""
    ov = torch.zeros(D_VOCAB, D_VOCAB, dtype=torch.float64)
    ov[5, 3], ov[7, 3] = 2.0, -1.0
    for sign in (1.0, -1.0):
        weights = handmade.skip_trigram_head(0 * ov, sign * ov)
        found = singular_directions(weights, weights.layers[0][0].W_OV, ALL, 1, 1)[0]
        assert (found.read.item(), found.written.item()) == (3, 5 if sign > 0 else 7)


@pytest.mark.parametrize("k", [1, 24])
def test_a_group_of_one_or_of_more_tokens_than_there_are_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=f"expected k from 2 to the number of source tokens, 23, got k = {k}"):
        clusters(handmade.copying_head(D_VOCAB), k=k)
