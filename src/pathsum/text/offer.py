"""What a text offers to an induction head, measured without a model (docs/framework.md §6.8)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64

CLASSES = 7  # of targets, by the number of earlier occurrences of the token before: 0, 1, 2 or 3, 4 to 7, …, 32 or more
ROUNDS = 100  # of expectation maximization


@dataclass(frozen=True)
class Offer:
    """How often pairs of tokens repeat within windows, and what an ideal induction head could make of it."""

    repeated: float  # share of targets that complete a pair of tokens seen before in the window, 0..1
    reliability: float  # where the token before has occurred before: share of its followers that are the target, 0..1
    saving_nats: float  # of the loss per token, beyond the best mixture of bigrams and the unigrams of the window


def offer(windows: Int64[np.ndarray, "batch pos"], bigram: Float[np.ndarray, "batch n"], weight: float = 1.0) -> Offer:
    """Return what ``windows`` (BOS and tokens) offer. ``bigram`` has the probability of each target by a bigram model;
    ``weight`` is that of targets that complete a repeated pair, in the mean loss.

    Two mixtures are fitted to the targets: of bigrams and the frequencies of the window's tokens so far, and of these
    two and the tokens that followed earlier occurrences of the token before. Their shares depend on the number of such
    occurrences: at most 21 free parameters in all. Memory: some n_ctx² numbers."""
    cache, follows, earlier = (np.concatenate(parts) for parts in zip(*map(_of_window, windows), strict=True))
    b = bigram.ravel()
    weights = np.where(follows > 0, weight, 1.0)
    classes = np.minimum(np.ceil(np.log2(earlier + 1)), CLASSES - 1).astype(int)
    without, having = (_mixture_loss(np.stack(p), classes, weights) for p in ((b, cache), (b, cache, follows)))
    return Offer(
        repeated=float((follows > 0).mean()),
        reliability=float(follows[earlier > 0].mean()) if (earlier > 0).any() else 0.0,
        saving_nats=float(without - having),
    )


def _of_window(row: Int64[np.ndarray, "pos"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each target, its share of the tokens so far, its share of the tokens that followed earlier
    occurrences of the token before it, and the number of these."""
    x, y = row[:-1], row[1:]
    known = np.tri(len(x))  # [t, s]: s is no later than t
    known[:, 0] = 0  # BOS is no token of the text
    seen = np.tril(known, -1) * (x[:, None] == x)
    cache = (known * (y[:, None] == x)).sum(1) / np.maximum(known.sum(1), 1)
    return cache, (seen * (y[:, None] == y)).sum(1) / np.maximum(seen.sum(1), 1), seen.sum(1)


def _mixture_loss(
    p: Float[np.ndarray, "part n"], classes: Int64[np.ndarray, "n"], weights: Float[np.ndarray, "n"]
) -> float:
    """Return the weighted mean loss of the best mixture of the rows of ``p``, whose shares differ by class; nats."""
    total = 0.0
    for k in np.unique(classes):
        mine, of = p[:, classes == k], weights[classes == k]
        shares = np.full(len(p), 1 / len(p))
        for _ in range(ROUNDS):
            parts = shares[:, None] * mine
            shares = (parts / parts.sum(0)) @ of / of.sum()
        total -= float(of @ np.log(shares @ mine))
    return total / weights.sum()
