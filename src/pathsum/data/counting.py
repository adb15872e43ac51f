"""How often does what follow what, in windows as a model sees them? Counting in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Int64
from scipy import sparse

from pathsum.data.windows import Windows

CHUNK = 1 << 22  # tokens counted at a time


def pair_counts(windows: Windows, d_vocab: int) -> sparse.csr_array:
    """How often does each token (row) stand before each token (column) that is predicted? The first row is BOS's."""
    total = sparse.csr_array((d_vocab, d_vocab), dtype=np.int64)
    for rows in chunks(windows):
        keys = (rows[:, :-1] * d_vocab + rows[:, 1:]).ravel()
        if d_vocab**2 <= CHUNK:
            counted = np.bincount(keys, minlength=d_vocab**2)
            found = np.flatnonzero(counted)
            number = counted[found]
        else:
            found, number = np.unique(keys, return_counts=True)
        total = total + sparse.csr_array(
            (number, (found // d_vocab, found % d_vocab)), shape=total.shape, dtype=np.int64
        )
    return total


def chunks(windows: Windows) -> Iterator[Int64[np.ndarray, "batch pos"]]:
    """All windows in order, about CHUNK tokens at a time."""
    for part in torch.arange(len(windows)).split(max(1, CHUNK // windows.n_ctx)):
        yield windows.batch(part).numpy()


def entropy(counts: Int64[np.ndarray, "out"]) -> float:
    """−Σ p log p of the distribution that the counts are, in nats."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def repeated_share(windows: Windows, d_vocab: int) -> float:
    """Which share of the tokens stood before in the same window, after the same two tokens? 0..1.

    What copying from context can gain at most, roughly: a corpus with little of it gives induction heads little to do.
    """
    repeated = 0
    for rows in chunks(windows):
        trigrams = (rows[:, :-2] * d_vocab + rows[:, 1:-1]) * d_vocab + rows[:, 2:]
        trigrams.sort(axis=1)
        repeated += int((trigrams[:, 1:] == trigrams[:, :-1]).sum())
    return repeated / (len(windows) * windows.n_ctx)
