"""Frequent unigrams, bigrams and skip-trigrams of the training text."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Int64
from scipy import sparse

from pathsum.data.bos import BOS
from pathsum.data.tokenizer import JOINER
from pathsum.data.windows import Windows
from pathsum.records.corpus import NGramRow

PAIRS = 256  # most frequent bigrams destination → out whose sources are counted
SAMPLE = 1 << 28  # window area, n_ctx² a window, that skip-trigrams are counted on
AREA = 1 << 22  # of it at a time
MIN_COUNT = 5  # below, a skip-trigram is noise


def ngram_rows(
    windows: Windows,
    unigram: Int64[np.ndarray, "out"],
    bigram: sparse.csr_array,
    vocabulary: list[str],
    top_k: int,
) -> list[NGramRow]:
    """Return the ``top_k`` most frequent unigrams and bigrams, and the ``top_k`` most informative skip-trigrams.

    Bigrams after BOS are left out: a window starts anywhere. Counts of unigrams and bigrams are over all training
    windows. Skip-trigrams are described at ``skip_trigrams``.
    """
    rows = []
    for (out,), count in _top_unigrams(unigram, top_k):
        rows.append(_row("unigram", (out,), count, math.log(count / unigram.sum()), vocabulary))
    totals = np.asarray(bigram.sum(axis=1)).ravel()
    for (dest, out), count in top_bigrams(bigram, top_k):
        rows.append(_row("bigram", (dest, out), count, math.log(count / totals[dest]), vocabulary))
    for ids, count, log_prob in skip_trigrams(windows, bigram, top_k):
        rows.append(_row("skip_trigram", ids, count, log_prob, vocabulary))
    return rows


def top_bigrams(bigram: sparse.csr_array, top_k: int) -> list[tuple[tuple[int, int], int]]:
    """Return the most frequent bigrams without BOS, most frequent first, ties by id."""
    pairs = bigram.tocoo()
    dest, out, count = pairs.coords[0].astype(int), pairs.coords[1].astype(int), pairs.data
    keep = (dest != BOS) & (out != BOS) & (count > 0)
    dest, out, count = dest[keep], out[keep], count[keep]
    best = np.lexsort((out, dest, -count))[:top_k]
    return [((int(dest[i]), int(out[i])), int(count[i])) for i in best]


def skip_trigrams(
    windows: Windows, bigram: sparse.csr_array, top_k: int
) -> list[tuple[tuple[int, int, int], int, float]]:
    """Return the skip-trigrams source … dest → out whose source, anywhere earlier in the window, is most informative.

    Returns (ids, count, log P(out | dest here, source before) in nats). The count is of places dest → out with source
    at least once before dest in the window. Counted on windows evenly spaced over the text, together SAMPLE / n_ctx²
    of them, for the PAIRS most frequent bigrams dest → out and every source. Ranked by count · (log P(out | dest,
    source before) − log P(out | dest)), the log-likelihood that the source adds: the most frequent ones would be
    frequent bigrams after frequent tokens. Memory: 2 · PAIRS · d_vocab counts.
    """
    d_vocab = bigram.shape[0]
    pairs = np.array([pair for pair, _ in top_bigrams(bigram, PAIRS)], dtype=np.int64).reshape(-1, 2)
    if not len(pairs):
        return []
    dests, dest_of_pair = np.unique(pairs[:, 0], return_inverse=True)
    with_pair = np.zeros((len(pairs), d_vocab), dtype=np.int64)  # source before, then dest → out
    with_dest = np.zeros((len(dests), d_vocab), dtype=np.int64)  # source before, then dest → anything
    n_pair, n_dest = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(dests), dtype=np.int64)
    key_order = np.argsort(pairs[:, 0] * d_vocab + pairs[:, 1])
    sorted_keys = (pairs[:, 0] * d_vocab + pairs[:, 1])[key_order]
    sample = windows.spread(max(1, SAMPLE // windows.n_ctx**2))
    for part in sample.split(max(1, AREA // windows.n_ctx**2)):
        rows = windows.batch(part).numpy()
        dest, out, first = rows[:, :-1], rows[:, 1:], _first_occurrence(rows[:, :-1])
        at_dest = _find(dests, dest)
        at_pair = _find(sorted_keys, dest * d_vocab + out)
        at_pair = np.where(at_pair >= 0, key_order[at_pair], -1)
        _add_sources(with_pair, n_pair, dest, first, at_pair)
        _add_sources(with_dest, n_dest, dest, first, at_dest)
    without = n_pair / np.maximum(n_dest[dest_of_pair], 1)  # P(out | dest) on the same windows
    given = with_pair / np.maximum(with_dest[dest_of_pair], 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(with_pair >= MIN_COUNT, with_pair * (np.log(given) - np.log(without)[:, None]), -np.inf)
    gain[:, BOS] = -np.inf  # BOS precedes every token
    best = np.argsort(-gain, axis=None, kind="stable")[:top_k]
    found = [(int(i), int(s)) for i, s in zip(*np.unravel_index(best, gain.shape), strict=True) if gain[i, s] > 0]
    return [((s, int(pairs[i, 0]), int(pairs[i, 1])), int(with_pair[i, s]), math.log(given[i, s])) for i, s in found]


def _add_sources(
    counts: Int64[np.ndarray, "kind source"],
    totals: Int64[np.ndarray, "kind"],
    tokens: Int64[np.ndarray, "batch pos"],
    first: Bool[np.ndarray, "batch pos"],
    kind: Int64[np.ndarray, "batch pos"],
) -> None:
    """Count, for every place of a kind (−1: none), the distinct tokens before it in its window."""
    window, query = np.nonzero(kind >= 0)
    of = kind[window, query]
    totals += np.bincount(of, minlength=len(totals))
    before = first[window] & (np.arange(tokens.shape[1]) < query[:, None])
    place, key = np.nonzero(before)
    flat = of[place] * counts.shape[1] + tokens[window[place], key]
    if counts.size <= AREA:
        counts += np.bincount(flat, minlength=counts.size).reshape(counts.shape)
    else:
        found, number = np.unique(flat, return_counts=True)
        counts.reshape(-1)[found] += number


def _first_occurrence(tokens: Int64[np.ndarray, "batch pos"]) -> Bool[np.ndarray, "batch pos"]:
    """Mark the first occurrence of each token in its window."""
    by_token = np.argsort(tokens, axis=1, kind="stable")
    ordered = np.take_along_axis(tokens, by_token, axis=1)
    new = np.ones_like(ordered, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.zeros_like(new)
    np.put_along_axis(first, by_token, new, axis=1)
    return first


def _find(sorted_values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the index of each wanted value among sorted ones, −1 where it is absent."""
    at = np.minimum(np.searchsorted(sorted_values, wanted), len(sorted_values) - 1)
    return np.where(sorted_values[at] == wanted, at, -1)


def _top_unigrams(counts: np.ndarray, top_k: int) -> list[tuple[tuple[int], int]]:
    best = np.argsort(-counts, kind="stable")[:top_k]
    return [((int(i),), int(counts[i])) for i in best if counts[i] > 0]


def _row(kind: str, ids: tuple[int, ...], count: int, log_prob: float, vocabulary: list[str]) -> NGramRow:
    return NGramRow(
        kind=kind,
        tokens=JOINER.join(vocabulary[i] for i in ids),
        ids=" ".join(str(i) for i in ids),
        count=count,
        log_prob_nats=log_prob,
    )
