"""The direct path, compared with the bigrams of the corpus."""

import dataclasses
import math

import pytest
import torch
from torch import Tensor

from pathsum.circuits.bigram import BigramFit, CountRows, compare_with_corpus, direct_path, top_pairs
from pathsum.core.lowrank import LowRank
from tests import handmade

D_VOCAB = 23


def some_counts(seed: int = 0) -> Tensor:
    """Return counts[token, next] in which a third of the pairs and one whole row are zero."""
    g = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 40, (D_VOCAB, D_VOCAB), generator=g)
    counts[torch.rand(D_VOCAB, D_VOCAB, generator=g) < 0.33] = 0
    counts[17] = 0
    return counts


def log_prob(counts: Tensor, smoothing: float) -> Tensor:
    prior = counts.sum(0) / counts.sum()
    return ((counts + smoothing * prior) / (counts.sum(-1, keepdim=True) + smoothing)).log()


def compared(direct: LowRank, counts: CountRows, smoothing: float, block: int = 256) -> BigramFit:
    return compare_with_corpus(direct, counts, smoothing, torch.Generator().manual_seed(0), block)


def test_the_direct_path_of_a_bigram_model_is_its_table() -> None:
    table = handmade.normal(torch.Generator().manual_seed(1), D_VOCAB, D_VOCAB)
    torch.testing.assert_close(direct_path(handmade.bigram(table)).dense(), table, rtol=0, atol=0)


@pytest.mark.parametrize("block", [5, 256])
def test_a_zero_layer_model_can_be_the_corpus_s_bigrams_exactly(block: int) -> None:
    counts = some_counts().double()
    shift = torch.arange(D_VOCAB).double()[:, None]  # a constant a token: softmax does not see it
    weights = handmade.bigram((log_prob(counts, 2.0).nan_to_num() + shift).mT)
    direct = direct_path(weights)
    fit = compared(direct, counts, smoothing=2.0, block=block)
    assert fit.correlation == pytest.approx(1, abs=1e-12)
    assert fit.kl_nats == pytest.approx(0, abs=1e-12)
    assert fit.pairs == int((counts > 0).sum())
    reversed_table = type(direct)(-direct.left, direct.right)
    assert compared(reversed_table, counts, smoothing=2.0).correlation == pytest.approx(-1, abs=1e-12)


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
    fit = compared(direct_path(handmade.bigram(table)), counts, smoothing=0.5, block=7)
    assert fit.correlation == pytest.approx(xy / math.sqrt(xx * yy), abs=1e-12)
    assert fit.kl_nats == pytest.approx(kl / counts.sum().item(), abs=1e-12)


def test_a_flat_table_has_learned_nothing() -> None:
    """Negative control: no correlation, and a divergence of log d_vocab minus the entropy of the corpus."""
    counts = some_counts(6).double()
    fit = compared(direct_path(handmade.bigram(torch.zeros(D_VOCAB, D_VOCAB))), counts, smoothing=0.0)
    shares = counts / counts.sum(-1, keepdim=True)
    entropy = torch.special.entr(shares.nan_to_num()).sum(-1)
    expected = math.log(D_VOCAB) - (entropy * counts.sum(-1)).sum().item() / counts.sum().item()
    assert fit.correlation == 0
    assert fit.kl_nats == pytest.approx(expected, abs=1e-12)


def test_a_flat_table_has_no_correlation_with_long_rows_either() -> None:
    """Negative control: rounding over 50,000 equal entries is not a correlation."""
    counts, ones = torch.full((2, 50_000), 3.0, dtype=torch.float64), torch.ones(50_000, 1, dtype=torch.float64)
    direct = LowRank(0.1 * ones, torch.ones(1, 2, dtype=torch.float64))
    assert compared(direct, counts, smoothing=1.0).correlation == 0


def test_counts_may_come_a_block_at_a_time() -> None:
    counts = some_counts()

    @dataclasses.dataclass
    class Streamed:
        largest: int = 0

        def __getitem__(self, rows: slice, /) -> Tensor:
            self.largest = max(self.largest, len(counts[rows]))
            return counts[rows]

    streamed, direct = Streamed(), direct_path(handmade.random_weights(seed=9, n_layers=0))
    fit = compared(direct, streamed, smoothing=1.0, block=5)
    assert fit == compared(direct, counts, smoothing=1.0, block=5)
    assert abs(fit.correlation) < 0.3  # a random model does not know the corpus
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
    counts = torch.zeros(5, 5, dtype=torch.int64)  # the second block fills the list, and has further pairs
    counts[0, 0], counts[1] = 1, torch.arange(10, 5, -1)
    pairs = top_pairs(direct_path(handmade.bigram(torch.zeros(5, 5))), counts, k=7, smoothing=1.0, block=1)
    assert [p.count for p in pairs] == [10, 9, 8, 7, 6, 1]
    counts = torch.zeros(D_VOCAB, D_VOCAB)  # pairs that never occur are left out
    counts[2, 3] = 5
    pairs = top_pairs(direct_path(handmade.random_weights(seed=0, n_layers=0)), counts, k=11, smoothing=0.0)
    assert [(p.token, p.next, p.count, p.corpus_log_prob_nats) for p in pairs] == [(2, 3, 5, 0.0)]


def test_counts_of_another_vocabulary_are_refused() -> None:
    direct = direct_path(handmade.random_weights(seed=0, n_layers=0))
    with pytest.raises(ValueError, match=r"expected 23 × 23 counts for tokens from 0, got 19 × 19"):
        compared(direct, torch.ones(19, 19), smoothing=1.0)
    with pytest.raises(ValueError, match="expected counts of pairs, got none"):
        compared(direct, torch.zeros(D_VOCAB, D_VOCAB), smoothing=1.0)
    with pytest.raises(ValueError, match="expected counts of at least two current tokens, got one"):
        compared(direct, torch.eye(D_VOCAB).roll(3, 1) * torch.eye(D_VOCAB)[:, :1], smoothing=1.0)


def skewed_counts() -> Tensor:
    """Return counts in which frequent tokens follow every token, and each token also has its own preferred
    successors."""
    common = torch.logspace(3, 0, D_VOCAB, dtype=torch.float64)
    return (common * some_counts(11).double().sqrt()).round()


def control(table: Tensor, counts: Tensor) -> BigramFit:
    """Compare the corpus with a direct path with logits ``table``[token, next]."""
    return compared(direct_path(handmade.bigram(table.mT)), counts, 1.0, block=7)


def unigram_table(counts: Tensor) -> Tensor:
    return (counts.sum(0) / counts.sum()).log().nan_to_num(neginf=0).expand(D_VOCAB, -1).clone()


def test_a_unigram_model_passes_the_old_bar_and_not_the_control() -> None:
    """Guards against taking a correlation of 0.5 for bigram statistics, with a chance level of 0."""
    counts = skewed_counts()
    found = control(unigram_table(counts), counts)
    assert found.correlation > 0.5
    assert found.unigram == pytest.approx(found.correlation, abs=1e-9)
    assert found.partial == 0
    assert found.excess_low <= 1e-9


def test_a_bigram_model_beats_the_unigram() -> None:
    counts = skewed_counts()
    found = control(log_prob(counts, 1.0).nan_to_num(neginf=0), counts)
    assert found.correlation == pytest.approx(1, abs=1e-9)
    assert found.partial == pytest.approx(1, abs=1e-9)
    assert 0 < found.excess_low <= found.correlation - found.unigram <= found.excess_high


def test_the_partial_correlation_is_that_of_residuals() -> None:
    """Identity: the correlation of the residuals of weighted regressions on log P(next)."""
    counts = skewed_counts()
    table = handmade.normal(torch.Generator().manual_seed(3), D_VOCAB, D_VOCAB) + 0.4 * unigram_table(counts)
    here = (counts > 0) & (counts.sum(-1, keepdim=True) > 0)
    w = counts.where(here, 0)

    def centred(values: Tensor) -> Tensor:
        values = values.nan_to_num(neginf=0).where(here, 0)
        mean = (w * values).sum(-1, keepdim=True) / w.sum(-1, keepdim=True).clamp(min=1)
        return (values - mean).where(here, 0)

    x, y, u = (centred(v) for v in (table, log_prob(counts, 1.0), unigram_table(counts)))
    x, y = (v - u * (w * v * u).sum() / (w * u * u).sum() for v in (x, y))
    expected = (w * x * y).sum() / ((w * x * x).sum() * (w * y * y).sum()).sqrt()
    assert control(table, counts).partial == pytest.approx(expected.item(), abs=1e-9)


def test_a_flat_path_has_nothing() -> None:
    counts = skewed_counts()
    found = control(torch.zeros(D_VOCAB, D_VOCAB), counts)
    assert (found.correlation, found.partial) == (0, 0)
    assert found.excess_high < 0 < found.unigram
