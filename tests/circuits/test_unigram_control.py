"""The unigram control: how much of the direct path's correlation with bigrams a unigram model also has."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pathsum.circuits.bigram import UnigramControl, compare_with_corpus, direct_path, unigram_control
from tests import handmade
from tests.circuits.counted import D_VOCAB, log_prob, some_counts


def skewed_counts() -> Tensor:
    """Return counts in which frequent tokens follow every token, and each token also has its own preferred
    successors."""
    common = torch.logspace(3, 0, D_VOCAB, dtype=torch.float64)
    return (common * some_counts(11).double().sqrt()).round()


def control(table: Tensor, counts: Tensor) -> tuple[float, UnigramControl]:
    """Return the correlation of a direct path with logits ``table``[token, next], and its unigram control."""
    direct = direct_path(handmade.bigram(table.mT))
    found = unigram_control(direct, counts, 1.0, torch.Generator().manual_seed(0), block=7)
    return compare_with_corpus(direct, counts, 1.0).correlation, found


def unigram_table(counts: Tensor) -> Tensor:
    return (counts.sum(0) / counts.sum()).log().nan_to_num(neginf=0).expand(D_VOCAB, -1).clone()


def test_a_unigram_model_passes_the_old_bar_and_not_the_control() -> None:
    """Guards against taking a correlation of 0.5 for bigram statistics, with a chance level of 0."""
    counts = skewed_counts()
    correlation, found = control(unigram_table(counts), counts)
    assert correlation > 0.5
    assert found.unigram == pytest.approx(correlation, abs=1e-9)
    assert found.partial == 0
    assert found.excess_low <= 1e-9


def test_a_bigram_model_beats_the_unigram() -> None:
    counts = skewed_counts()
    correlation, found = control(log_prob(counts, 1.0).nan_to_num(neginf=0), counts)
    assert correlation == pytest.approx(1, abs=1e-9)
    assert found.partial == pytest.approx(1, abs=1e-9)
    assert 0 < found.excess_low <= correlation - found.unigram <= found.excess_high


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
    assert control(table, counts)[1].partial == pytest.approx(expected.item(), abs=1e-9)


def test_a_flat_path_has_nothing() -> None:
    counts = skewed_counts()
    correlation, found = control(torch.zeros(D_VOCAB, D_VOCAB), counts)
    assert (correlation, found.partial) == (0, 0)
    assert found.excess_high < 0 < found.unigram
