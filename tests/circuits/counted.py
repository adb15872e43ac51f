"""Helpers of the bigram tests: token counts and their log-probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

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
