"""Value-weighted attention: the share of each key in what a head moves."""

import torch

from pathsum.circuits.value_weighted import value_weighted
from pathsum.core.weights import Head
from tests import handmade

D_VOCAB, POS, BATCH = 11, 7, 3


def test_the_weights_are_those_of_every_product_written_out() -> None:
    weights = handmade.random_weights(1, n_layers=1, d_vocab=D_VOCAB)
    generator = torch.Generator().manual_seed(2)
    read = handmade.normal(generator, BATCH, POS, 13)
    pattern = handmade.normal(generator, BATCH, 3, POS, POS).softmax(-1).tril()
    found = value_weighted(pattern, read, weights.layers[0])
    for h, head in enumerate(weights.layers[0]):
        size = (read @ head.W_OV.dense().mT).square().sum(-1).sqrt()
        expected = pattern[:, h] * size[:, None]
        torch.testing.assert_close(found[:, h], expected / expected.sum(-1, keepdim=True), rtol=1e-12, atol=0)


def test_values_of_one_size_leave_the_pattern_as_it_is() -> None:
    weights = handmade.copying_head(D_VOCAB, strength=-3.0)
    tokens = torch.randint(D_VOCAB, (BATCH, POS), generator=torch.Generator().manual_seed(3))
    pattern = handmade.uniform_pattern(POS).expand(BATCH, 1, POS, POS)
    torch.testing.assert_close(value_weighted(pattern, weights.W_E.mT[tokens], weights.layers[0]), pattern)


def test_a_head_that_rests_where_it_moves_nothing_does_not_rest_by_value() -> None:
    """Known value: token 0 has value 0, so a query that attends to it by nine tenths moves only the token with the last
    tenth."""
    eye = torch.eye(D_VOCAB, dtype=torch.float64)
    silent = eye.clone()
    silent[0, 0] = 0
    head = Head(eye, eye, eye, silent)
    pattern = torch.zeros(1, 1, POS, POS, dtype=torch.float64)
    pattern[..., 0] = 0.9
    pattern[..., 1] = 0.1
    found = value_weighted(pattern, eye[torch.arange(POS)][None], (head,))
    assert found[0, 0, 1:, 0].tolist() == [0] * (POS - 1)
    assert found[0, 0, 1:, 1].tolist() == [1] * (POS - 1)
    nothing = Head(eye, eye, eye, 0 * eye)
    assert value_weighted(pattern, eye[torch.arange(POS)][None], (nothing,)).abs().max() == 0
