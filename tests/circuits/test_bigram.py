"""The direct path, compared with the bigrams of the corpus."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from torch import Tensor

from pathsum.circuits.bigram import compare_with_corpus, direct_path, top_pairs
from tests import handmade
from tests.circuits.counted import D_VOCAB, log_prob, some_counts


def test_the_direct_path_of_a_bigram_model_is_its_table() -> None:
    table = handmade.normal(torch.Generator().manual_seed(1), D_VOCAB, D_VOCAB)
    torch.testing.assert_close(direct_path(handmade.bigram(table)).dense(), table, rtol=0, atol=0)


@pytest.mark.parametrize("block", [5, 256])
def test_a_zero_layer_model_can_be_the_corpus_s_bigrams_exactly(block: int) -> None:
    counts = some_counts().double()
    shift = torch.arange(D_VOCAB).double()[:, None]  # a constant a token: softmax does not see it
    weights = handmade.bigram((log_prob(counts, 2.0).nan_to_num() + shift).mT)
    fit = compare_with_corpus(direct_path(weights), counts, smoothing=2.0, block=block)
    assert fit.correlation == pytest.approx(1, abs=1e-12)
    assert fit.kl_nats == pytest.approx(0, abs=1e-12)
    assert fit.pairs == int((counts > 0).sum())


def test_correlation_and_divergence_are_what_they_are_called() -> None:
    """Identity: computed pair by pair in plain Python."""
    counts = some_counts(3).double()
    table = handmade.normal(torch.Generator().manual_seed(4), D_VOCAB, D_VOCAB)
    corpus, model = log_prob(counts, 0.5), table.mT.log_softmax(-1)
    xs, ys, ws, kl = [], [], [], 0.0
    for t in range(D_VOCAB):
        row = [n for n in range(D_VOCAB) if counts[t, n] > 0]
        total = sum(counts[t, n].item() for n in row)
        if not row:
            continue
        mean_x = sum(counts[t, n].item() * table[n, t].item() for n in row) / total
        mean_y = sum(counts[t, n].item() * corpus[t, n].item() for n in row) / total
        xs += [table[n, t].item() - mean_x for n in row]
        ys += [corpus[t, n].item() - mean_y for n in row]
        ws += [counts[t, n].item() for n in row]
        kl += total * sum(corpus[t].exp()[n].item() * (corpus - model)[t, n].item() for n in range(D_VOCAB))
    xy = sum(w * x * y for w, x, y in zip(ws, xs, ys, strict=True))
    xx, yy = (sum(w * a * a for w, a in zip(ws, values, strict=True)) for values in (xs, ys))
    fit = compare_with_corpus(direct_path(handmade.bigram(table)), counts, smoothing=0.5, block=7)
    assert fit.correlation == pytest.approx(xy / math.sqrt(xx * yy), abs=1e-12)
    assert fit.kl_nats == pytest.approx(kl / counts.sum().item(), abs=1e-12)


def test_a_reversed_table_correlates_the_other_way() -> None:
    counts = some_counts(5).double()
    weights = handmade.bigram(-log_prob(counts, 1.0).mT.nan_to_num())
    assert compare_with_corpus(direct_path(weights), counts, smoothing=1.0).correlation == pytest.approx(-1, abs=1e-12)


def test_a_flat_table_has_learned_nothing() -> None:
    """Negative control: no correlation, and a divergence of log d_vocab minus the entropy of the corpus."""
    counts = some_counts(6).double()
    fit = compare_with_corpus(direct_path(handmade.bigram(torch.zeros(D_VOCAB, D_VOCAB))), counts, smoothing=0.0)
    shares = counts / counts.sum(-1, keepdim=True)
    entropy = torch.special.entr(shares.nan_to_num()).sum(-1)
    expected = math.log(D_VOCAB) - (entropy * counts.sum(-1)).sum().item() / counts.sum().item()
    assert fit.correlation == 0
    assert fit.kl_nats == pytest.approx(expected, abs=1e-12)


def test_a_random_model_does_not_know_the_corpus() -> None:
    weights = handmade.random_weights(seed=8, n_layers=0)
    assert abs(compare_with_corpus(direct_path(weights), some_counts(), smoothing=1.0).correlation) < 0.3


def test_counts_may_come_a_block_at_a_time() -> None:
    counts = some_counts()

    @dataclasses.dataclass
    class Streamed:
        largest: int = 0

        def __getitem__(self, rows: slice, /) -> Tensor:
            self.largest = max(self.largest, len(counts[rows]))
            return counts[rows]

    streamed, direct = Streamed(), direct_path(handmade.random_weights(seed=9, n_layers=0))
    fit = compare_with_corpus(direct, streamed, smoothing=1.0, block=5)
    assert fit == compare_with_corpus(direct, counts, smoothing=1.0, block=5)
    assert streamed.largest == 5


@pytest.mark.parametrize("block", [3, 256])
def test_the_top_pairs_are_the_corpus_s_most_frequent(block: int) -> None:
    counts = some_counts(7)
    table = handmade.normal(torch.Generator().manual_seed(2), D_VOCAB, D_VOCAB)
    pairs = top_pairs(direct_path(handmade.bigram(table)), counts, k=13, smoothing=1.0, block=block)
    assert [p.count for p in pairs] == counts.flatten().sort(descending=True).values[:13].tolist()
    for p in pairs:
        assert counts[p.token, p.next] == p.count
        assert p.corpus_log_prob_nats == pytest.approx(log_prob(counts.double(), 1.0)[p.token, p.next].item())
        assert p.model_log_prob_nats == pytest.approx(table[:, p.token].log_softmax(0)[p.next].item())


def test_pairs_that_never_occur_are_not_top_pairs() -> None:
    counts = torch.zeros(D_VOCAB, D_VOCAB)
    counts[2, 3] = 5
    pairs = top_pairs(direct_path(handmade.random_weights(seed=0, n_layers=0)), counts, k=11, smoothing=0.0)
    assert [(p.token, p.next, p.count, p.corpus_log_prob_nats) for p in pairs] == [(2, 3, 5, 0.0)]


def test_counts_of_another_vocabulary_are_refused() -> None:
    direct = direct_path(handmade.random_weights(seed=0, n_layers=0))
    with pytest.raises(ValueError, match=r"expected 23 × 23 counts for tokens from 0, got 19 × 19"):
        compare_with_corpus(direct, torch.ones(19, 19), smoothing=1.0)
    with pytest.raises(ValueError, match="expected counts of pairs, got none"):
        compare_with_corpus(direct, torch.zeros(D_VOCAB, D_VOCAB), smoothing=1.0)
