"""List frequent unigrams and bigrams, and informative skip-trigrams, of the training text."""

import math

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int64
from scipy import sparse

from pathsum.records.corpus import NGramRow
from pathsum.text.bos import BOS
from pathsum.text.tokenizer import JOINER
from pathsum.text.windows import Windows

PAIRS = 256  # number of most frequent bigrams dest → out for which sources are counted
SAMPLE = 1 << 28  # sum of n_ctx² over the windows on which skip-trigrams are counted
AREA = 1 << 22  # sum of n_ctx² over the windows that are counted at a time
MIN_COUNT = 5  # fewest places of a skip-trigram; fewer are noise


def ngram_rows(
    windows: Windows,
    unigram: Int64[np.ndarray, "out"],
    bigram: sparse.csr_array,
    vocabulary: list[str],
    top_k: int,
) -> list[NGramRow]:
    """Return the most frequent unigrams and bigrams and the most informative skip-trigrams of ``windows``, at most
    ``top_k`` of each, from the counts of targets and of pairs of successive tokens in these windows."""

    def row(kind: str, ids: tuple[int, ...], count: int, log_prob: float) -> NGramRow:
        return NGramRow(kind, JOINER.join(vocabulary[i] for i in ids), " ".join(map(str, ids)), count, log_prob)

    unigrams = [(int(i), int(unigram[i])) for i in np.argsort(-unigram, kind="stable")[:top_k] if unigram[i] > 0]
    total, totals = unigram.sum(), np.asarray(bigram.sum(axis=1)).ravel()
    return [
        *(row("unigram", (out,), count, math.log(count / total)) for out, count in unigrams),
        *(row("bigram", ids, count, math.log(count / totals[ids[0]])) for ids, count in top_bigrams(bigram, top_k)),
        *(row("skip_trigram", *found) for found in skip_trigrams(windows, bigram, top_k)),
    ]


def top_bigrams(bigram: sparse.csr_array, top_k: int) -> list[tuple[tuple[int, int], int]]:
    """Return the ``top_k`` most frequent bigrams without BOS as ((dest, out), count); of equal counts, lower ids."""
    pairs = bigram.tocoo()
    dest, out, count = pairs.coords[0].astype(int), pairs.coords[1].astype(int), pairs.data
    keep = (dest != BOS) & (out != BOS) & (count > 0)
    dest, out, count = dest[keep], out[keep], count[keep]
    best = np.lexsort((out, dest, -count))[:top_k]
    return [((int(dest[i]), int(out[i])), int(count[i])) for i in best]


def skip_trigrams(
    windows: Windows, bigram: sparse.csr_array, top_k: int
) -> list[tuple[tuple[int, int, int], int, float]]:
    """Return at most ``top_k`` skip-trigrams source … dest → out, those whose source is most informative about out.

    Each entry is ((source, dest, out), number of places, log P(out | dest, source before) in nats). A place is a
    position of dest → out with the source anywhere earlier in the window. The rank is by the log-likelihood that the
    source adds, places · (log P(out | dest, source before) − log P(out | dest)), which must be positive. Memory grows
    as PAIRS · d_vocab + AREA."""
    d_vocab = bigram.shape[0]
    pairs = np.array([pair for pair, _ in top_bigrams(bigram, PAIRS)], dtype=np.int64).reshape(-1, 2)
    if not len(pairs):
        return []
    dests, dest_of_pair = np.unique(pairs[:, 0], return_inverse=True)
    with_pair = np.zeros((len(pairs), d_vocab), dtype=np.int64)  # places of dest → out with the source before
    with_dest = np.zeros((len(dests), d_vocab), dtype=np.int64)  # places of dest with the source before
    n_pair, n_dest = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(dests), dtype=np.int64)
    number_of_pair, number_of_dest = pd.Index(pairs[:, 0] * d_vocab + pairs[:, 1]), pd.Index(dests)
    sample = windows.spread(max(1, SAMPLE // windows.n_ctx**2))
    for part in sample.split(max(1, AREA // windows.n_ctx**2)):
        rows = windows.batch(part).numpy()
        dest, out = rows[:, :-1], rows[:, 1:]
        first = (dest[:, :, None] == dest[:, None, :]).argmax(-1) == np.arange(windows.n_ctx)
        at_pair = number_of_pair.get_indexer(pd.Index((dest * d_vocab + out).ravel())).reshape(dest.shape)
        at_dest = number_of_dest.get_indexer(pd.Index(dest.ravel())).reshape(dest.shape)
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
    """Add to ``counts`` the distinct tokens before each place in its window, and to ``totals`` the places, by kind."""
    window, query = np.nonzero(kind >= 0)
    of = kind[window, query]
    totals += np.bincount(of, minlength=len(totals))
    before = first[window] & (np.arange(tokens.shape[1]) < query[:, None])
    place, key = np.nonzero(before)
    np.add.at(counts.reshape(-1), of[place] * counts.shape[1] + tokens[window[place], key], 1)
