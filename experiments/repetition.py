"""Estimate, without training a model, how far induction can reduce the loss on a text."""

from __future__ import annotations

import numpy as np

from pathsum.data.counting import pair_counts
from pathsum.data.windows import Windows
from pathsum.ngrams.smoothing import BigramTable, best_smoothing

HELD_OUT = 256  # windows
ROUNDS = 100  # steps of expectation maximization
CLASSES = 7  # classes of tokens, by the number of earlier occurrences in the window: 0, 1, 2–3, 4–7, …, at least 32


def induction_saving(train: Windows, val: Windows, d_vocab: int) -> float:
    """Return by how much an ideal induction head that matches one token reduces the loss of a one-layer model, in nats
    per token.

    Two mixture models are compared by their loss on held-out windows. The first stands for a one-layer model: it mixes
    the best smoothed bigram model with the unigram frequencies of the window up to the current token. The second adds a
    third distribution: the tokens that followed earlier occurrences of the current token in the window. The mixture
    weights depend on the number of these occurrences. They have at most 21 degrees of freedom in all, and are fitted on
    the same held-out windows.
    """
    counts = pair_counts(train, d_vocab)
    table = BigramTable.of(counts.toarray(), np.asarray(counts.sum(axis=0)).ravel())
    smoothing = best_smoothing(table, pair_counts(val, d_vocab))
    bigram, cache, copies, earlier = [], [], [], []
    for row in val.batch(val.spread(HELD_OUT)).numpy():
        x, y = row[:-1], row[1:]
        known = np.tri(len(x))  # [t, s]: s is no later than t
        known[:, 0] = 0  # BOS is no token of the text
        seen = np.tril(known, -1) * (x[:, None] == x)  # [t, s]: s is an earlier occurrence of token t
        bigram.append(table.probabilities(x, y, smoothing))
        cache.append((known * (y[:, None] == x)).sum(1) / np.maximum(known.sum(1), 1))
        copies.append((seen * (y[:, None] == y)).sum(1) / np.maximum(seen.sum(1), 1))
        earlier.append(seen.sum(1))
    of = np.minimum(np.ceil(np.log2(np.concatenate(earlier) + 1)), CLASSES - 1).astype(int)
    b, u, c = map(np.concatenate, (bigram, cache, copies))
    return _mixture_loss(np.stack([b, u]), of) - _mixture_loss(np.stack([b, u, c]), of)


def _mixture_loss(p: np.ndarray, of: np.ndarray) -> float:
    """Return the mean loss of the best mixture of the rows of ``p`` [distribution, token], in nats.

    ``p`` holds probabilities of the next token. ``of`` is the class of each token, and each class has its own mixture
    weights.
    """
    total = 0.0
    for k in np.unique(of):
        mine = p[:, of == k]
        w = np.full(len(p), 1 / len(p))
        for _ in range(ROUNDS):
            share = w[:, None] * mine
            w = (share / share.sum(0)).mean(1)
        total -= float(np.log(w @ mine).sum())
    return total / p.shape[1]
