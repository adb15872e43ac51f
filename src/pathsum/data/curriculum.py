"""The curriculum: the windows that repeat themselves most, with which training may start (train.curriculum_tokens)."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

from pathsum.data.counting import chunks, pair_counts
from pathsum.data.windows import Windows


def repetition(windows: Windows, d_vocab: int) -> Float64[np.ndarray, "window"]:
    """Compute the bigram loss of the repeated pairs of each window, in nats per token.

    Σ −log p(b | a) / n_ctx over the places of a window where b follows a and did so earlier in the window; p is the
    share of the bigram in all windows, c(a b) / c(a ·). It is 0 where no pair occurs twice. It ranks windows as the
    loss reduction by an induction head does (r = 0.99 on prose with 1,024 tokens), but it does not bound that
    reduction: a head cannot know that a pair will be repeated, and a pair that occurs in one window alone adds little,
    because p counts that window too. Costs two passes over the text, a sort of each window, and about 40 bytes per
    distinct pair.
    """
    counts = pair_counts(windows, d_vocab)
    counts.sort_indices()
    sources = np.repeat(np.arange(d_vocab), np.diff(counts.indptr))
    pairs = sources * d_vocab + counts.indices  # ascending: row by row, and in each by column
    nats = np.log(counts.sum(axis=1)[sources] / counts.data)
    found = []
    for rows in chunks(windows):
        keys = np.sort(rows[:, :-1] * d_vocab + rows[:, 1:], axis=1)
        again = keys[:, 1:] == keys[:, :-1]
        cost = np.zeros(again.shape)
        cost[again] = nats[np.searchsorted(pairs, keys[:, 1:][again])]
        found.append(cost.sum(1) / windows.n_ctx)
    return np.concatenate(found)


def most_repetitive(windows: Windows, share: float, d_vocab: int) -> Windows:
    """Return the ``share`` of ``windows`` with the most ``repetition``, at least one, the most repetitive first."""
    by_repetition = np.argsort(-repetition(windows, d_vocab), kind="stable")
    return windows.only(by_repetition[: math.ceil(share * len(windows))])
