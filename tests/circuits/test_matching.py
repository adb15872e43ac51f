"""Matching along a pair of paths: the dense product, AMF's pair, and a circuit that matches along one pair only."""

import pytest
import torch

from pathsum.circuits.eigenvalues import matching_eigenvalues, positivity
from pathsum.circuits.matching import pair_matching_eigenvalues, scale_as_read
from pathsum.circuits.paths import Path
from tests import handmade

D_VOCAB = 23
ONES = torch.ones(D_VOCAB, dtype=handmade.DTYPE)


@pytest.mark.parametrize(("query", "key"), [((), ()), ((), ((0, 1),)), (((0, 2), (1, 0)), ((1, 1),))])
def test_the_eigenvalues_are_those_of_the_dense_product(query: Path, key: Path) -> None:
    weights, g = handmade.random_weights(seed=1, n_layers=3), torch.Generator().manual_seed(1)
    scales = tuple(0.5 + torch.rand(2, D_VOCAB, generator=g, dtype=handmade.DTYPE))
    unigram, late = torch.rand(D_VOCAB, generator=g, dtype=handmade.DTYPE), weights.layers[2][1]
    carried = []
    for path, scale in zip((query, key), scales, strict=True):
        x = weights.W_E * scale
        for layer, h in path:
            x = weights.layers[layer][h].W_OV.dense() @ x
        carried.append(x)
    dense = carried[0].mT @ late.W_QK.dense() @ carried[1]
    dense = dense - (dense @ unigram / unigram.sum()).unsqueeze(-1)
    found = pair_matching_eigenvalues(weights, late, (query, key), scales, unigram)
    for power in (1, 2, 3):
        expected = torch.linalg.matrix_power(dense, power).trace()
        torch.testing.assert_close(found.pow(power).sum().real, expected, rtol=1e-9, atol=1e-9)


def test_the_direct_query_and_a_previous_token_key_are_what_the_corner_was() -> None:
    weights = handmade.random_weights(seed=2, n_layers=2)
    late, early = weights.layers[1][0], weights.layers[0][2]
    pair = pair_matching_eigenvalues(weights, late, ((), ((0, 2),)), (ONES, ONES), ONES)
    assert positivity(pair) == pytest.approx(positivity(matching_eigenvalues(weights, late, early, ONES)), abs=1e-9)


def test_a_circuit_matches_on_the_pair_that_it_was_made_with_and_on_no_other() -> None:
    weights = handmade.self_attending_pair(D_VOCAB)
    paths: list[Path] = [(), ((0, 0),), ((0, 1),)]
    late = weights.layers[1][0]
    found = {
        (q, k): positivity(pair_matching_eigenvalues(weights, late, (q, k), (ONES, ONES), ONES))
        for q in paths
        for k in paths
    }
    assert found.pop((paths[2], paths[1])) == pytest.approx(1, abs=1e-12)
    assert set(found.values()) == {0.0}


def test_a_scale_is_the_mean_over_a_tokens_positions_and_unseen_tokens_have_none() -> None:
    scale, tokens = torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]]), torch.tensor([[0, 1, 1], [3, 1, 0]])
    assert scale_as_read(scale, tokens, 5).tolist() == pytest.approx([4, 11 / 3, 0, 3, 0])
