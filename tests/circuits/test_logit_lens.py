"""The logit lens: the loss of the model when the stream is unembedded after a layer."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from pathsum.circuits.logit_lens import lens_losses
from pathsum.circuits.paths import path_sum
from pathsum.core.weights import Weights
from tests import handmade

D_VOCAB, BLOCK, BATCH = 23, 11, 5
POS = 1 + 2 * BLOCK


def test_after_each_layer_the_loss_is_that_of_the_paths_through_the_layers_so_far() -> None:
    """Identity: the stream after l layers is the final stream of a model of the first l layers."""
    weights = handmade.random_weights(1, n_layers=2, d_vocab=D_VOCAB)
    tokens = torch.randint(D_VOCAB, (BATCH, POS + 1), generator=torch.Generator().manual_seed(2))
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    x, reads, patterns = weights.W_E.mT[inputs], [weights.W_E.mT[inputs]], []
    for layer in weights.layers:
        patterns.append(torch.stack([handmade.content_pattern(head, x) for head in layer], 1))
        x = x + sum(patterns[-1][:, h] @ x @ head.W_OV.dense().mT for h, head in enumerate(layer))
        reads.append(x)
    found = lens_losses(reads, weights.W_U, targets)
    for n in range(3):
        part = Weights(weights.W_E, weights.W_U, weights.layers[:n])
        logits = path_sum(part, inputs, patterns[:n], [torch.ones(BATCH, POS, dtype=torch.float64)] * (n + 1))
        expected = [cross_entropy(logits[b], targets[b]).item() for b in range(BATCH)]
        assert found[n].tolist() == pytest.approx(expected, abs=1e-12)


def test_induction_is_read_off_the_second_layer_and_not_off_the_first() -> None:
    """Known values: the first layer writes to a subspace that is not unembedded, so it changes no logit.

    The induction pair raises the next token by 20 logits against 22 other tokens, and the current token has 1 logit.
    """
    weights = handmade.induction_pair(D_VOCAB)
    (early,), (late,) = weights.layers
    tokens = handmade.repeated_tokens(3, BATCH, D_VOCAB, BLOCK)
    x = weights.W_E.mT[tokens]
    first = x + handmade.previous_token_pattern(POS) @ x @ early.W_OV.dense().mT
    second = first + 20 * handmade.content_pattern(late, first) @ first @ late.W_OV.dense().mT
    copied = slice(BLOCK + 1, 2 * BLOCK)
    reads = [stream[:, copied] for stream in (x, first, second)]
    before, between, after = lens_losses(reads, weights.W_U, tokens[:, BLOCK + 2 :]).mean(-1).tolist()
    assert before == between == pytest.approx(math.log(math.e + 22), abs=1e-12)
    assert after == pytest.approx(math.log1p((21 + math.e) * math.exp(-20)), rel=1e-3)
