"""source … destination → out."""

from __future__ import annotations

import pytest
import torch

from pathsum.circuits.qk_ov import ov_circuit, qk_circuit
from pathsum.circuits.skip_trigrams import skip_trigrams
from tests import handmade

D_VOCAB = 19


def even() -> torch.Tensor:
    return torch.ones(D_VOCAB, dtype=torch.float64)


def test_a_planted_skip_trigram_comes_first() -> None:
    """Calibration: 7 nats of attention and 3 of logit, less the means over 19 tokens."""
    qk, ov = torch.zeros(D_VOCAB, D_VOCAB), torch.zeros(D_VOCAB, D_VOCAB)
    source, destination, out = 2, 11, 5
    qk[destination, source], ov[out, source] = 7, 3
    weights = handmade.skip_trigram_head(qk, ov)
    (only,) = skip_trigrams(weights, weights.layers[0][0], even(), k=13)
    assert (only.source, only.destination, only.out) == (source, destination, out)
    assert only.qk_nats == pytest.approx(7 * 18 / 19, abs=1e-12)
    assert only.ov_logit == pytest.approx(3 * 18 / 19, abs=1e-12)
    assert only.effect == pytest.approx(21 * (18 / 19) ** 2, abs=1e-12)


@pytest.mark.parametrize(("k", "block"), [(1, 7), (17, 5), (200, 256)])
def test_the_list_is_the_best_of_all_triples(k: int, block: int) -> None:
    """Identity: against every triple of the vocabulary, weighed out."""
    weights = handmade.random_weights(seed=3, n_layers=1, d_vocab=D_VOCAB)
    head = weights.layers[0][0]
    unigram = torch.rand(D_VOCAB, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    qk, ov = qk_circuit(weights, head.W_QK, unigram).dense(), ov_circuit(weights, head.W_OV).dense()
    p = D_VOCAB * unigram / unigram.sum()
    pairs = qk.clamp(min=0) * (p[:, None] * p).sqrt()
    effects = torch.einsum("ds,os->dso", pairs, ov.clamp(min=0))
    found = skip_trigrams(weights, head, unigram, k, block)
    expected = effects.flatten().sort(descending=True).values[:k]
    torch.testing.assert_close(
        torch.tensor([f.effect for f in found], dtype=torch.float64), expected, rtol=1e-10, atol=0
    )
    for f in found:
        assert effects[f.destination, f.source, f.out].item() == pytest.approx(f.effect, rel=1e-10)


def test_tokens_that_the_corpus_does_not_hold_are_not_listed() -> None:
    weights = handmade.random_weights(seed=5, n_layers=1, d_vocab=D_VOCAB)
    unigram = even()
    unigram[:7] = 0
    found = skip_trigrams(weights, weights.layers[0][0], unigram, k=101)
    assert all(f.source >= 7 and f.destination >= 7 for f in found)
    assert len(found) == 101


def test_a_head_that_does_nothing_has_no_skip_trigrams() -> None:
    weights = handmade.skip_trigram_head(torch.zeros(D_VOCAB, D_VOCAB), torch.zeros(D_VOCAB, D_VOCAB))
    assert skip_trigrams(weights, weights.layers[0][0], even(), k=13) == []


def test_a_head_that_attends_evenly_has_no_skip_trigrams_however_it_copies() -> None:
    weights = handmade.copying_head(D_VOCAB)
    assert skip_trigrams(weights, weights.layers[0][0], even(), k=13) == []


def test_the_list_needs_room() -> None:
    weights = handmade.copying_head(D_VOCAB)
    with pytest.raises(ValueError, match="expected k ≥ 1"):
        skip_trigrams(weights, weights.layers[0][0], even(), k=0)
