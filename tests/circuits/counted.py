"""Token counts, and a log probability."""

from __future__ import annotations

import torch
from torch import Tensor

D_VOCAB = 23


def some_counts(seed: int = 0) -> Tensor:
    """Counts[token, next]; a third of the pairs and one whole row never occur."""
    g = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 40, (D_VOCAB, D_VOCAB), generator=g)
    counts[torch.rand(D_VOCAB, D_VOCAB, generator=g) < 0.33] = 0
    counts[17] = 0
    return counts


def log_prob(counts: Tensor, smoothing: float) -> Tensor:
    prior = counts.sum(0) / counts.sum()
    return ((counts + smoothing * prior) / (counts.sum(-1, keepdim=True) + smoothing)).log()
