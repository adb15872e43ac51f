"""Count tokens and pairs of tokens in windows, in bounded memory."""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Int64
from scipy import sparse

from pathsum.text.windows import Windows

CHUNK = 1 << 22  # tokens counted at a time


def pair_counts(windows: Windows, d_vocab: int) -> sparse.csr_array:
    """Count how often each token (column) follows each token (row) within a window."""
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
    """Yield all windows in order, each as BOS and n_ctx tokens, in batches of about CHUNK tokens."""
    for part in torch.arange(len(windows)).split(max(1, CHUNK // windows.n_ctx)):
        yield windows.batch(part).numpy()


def entropy(counts: Int64[np.ndarray, "out"]) -> float:
    """Return the entropy −Σ p log p of the distribution p = counts / Σ counts, in nats; 0 if all counts are 0."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def repeated_share(windows: Windows, d_vocab: int) -> float:
    """Return the share of tokens (0 to 1) that complete a trigram that has occurred earlier in the same window."""
    repeated = 0
    for rows in chunks(windows):
        trigrams = (rows[:, :-2] * d_vocab + rows[:, 1:-1]) * d_vocab + rows[:, 2:]
        trigrams.sort(axis=1)
        repeated += int((trigrams[:, 1:] == trigrams[:, :-1]).sum())
    return repeated / (len(windows) * windows.n_ctx)
