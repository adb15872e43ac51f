"""The score of the pair (current token, previous token) is a part of the head's attention scores."""

import pytest
import torch

from pathsum.circuits.content import by_offset, reads
from pathsum.circuits.fuzzy_matching import match_scores, standardised
from pathsum.core.lowrank import LowRank
from tests import handmade

D_VOCAB, POS = 23, 11


def test_it_is_the_part_of_the_scores_that_pairs_the_current_with_the_previous_token() -> None:
    """Identity in float64 with the content score of this pair, in a model whose patterns are exact."""
    weights = handmade.random_weights(1, n_layers=2)
    back, own = handmade.previous_token_pattern(POS), torch.eye(POS, dtype=handmade.DTYPE)
    pattern = torch.stack([back, own, (back + own) / 2]).expand(1, -1, -1, -1)
    scale = torch.full((1, POS), 0.7, dtype=handmade.DTYPE)
    tokens = torch.randperm(D_VOCAB, generator=torch.Generator().manual_seed(2))[None, :POS]
    ones = torch.ones(1, POS, dtype=handmade.DTYPE)
    layers = reads(weights, tokens, [pattern, pattern], [scale, ones, ones], by_offset(POS))
    next(layers)
    parts = next(layers)
    late = weights.layers[1][1]
    expected = (parts[0] @ late.W_QK.left @ (late.W_QK.right @ parts[1].mT))[0]
    scaled = type(weights)(0.7 * weights.W_E, weights.W_U, weights.layers)
    current, previous = torch.tensor([[0, 1, 0.5], [1, 0, 0.5]], dtype=handmade.DTYPE)
    found = match_scores(scaled, weights.W_E, late, current, previous).dense()
    here = tokens[0]
    torch.testing.assert_close(found[here[1:]][:, here[1:-1]], expected[1:, 2:], rtol=0, atol=1e-12)


def test_standardised_scores_are_those_of_the_dense_table() -> None:
    g = torch.Generator().manual_seed(3)
    scores = LowRank(handmade.normal(g, D_VOCAB, 5), handmade.normal(g, 5, D_VOCAB))
    present = torch.arange(D_VOCAB) % 7 != 0
    dense = scores.dense()
    dense = dense - dense[:, present].mean(1, keepdim=True)
    dense = dense / dense[present][:, present].std(correction=0)
    pairs = torch.cartesian_prod(*[present.nonzero().squeeze(-1)] * 2)
    found = standardised(scores, *pairs.unbind(1), present)
    torch.testing.assert_close(found, dense[pairs[:, 0], pairs[:, 1]], rtol=1e-12, atol=1e-12)
    assert found.mean().item() == pytest.approx(0, abs=1e-12)
    nothing = LowRank(torch.zeros(D_VOCAB, 5), torch.zeros(5, D_VOCAB))
    assert not standardised(nothing, *pairs.unbind(1), present).any()
