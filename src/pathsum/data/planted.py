"""What does text look like whose bigrams, skip-trigrams and repetition are known?

The positive control of the whole pipeline: whatever is measured on this corpus can be compared with ``PlantedTruth``.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from pathsum.config import PlantedCorpus

CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxz", "aeiou"
LOGIT_SCALE = 2.0  # spread of the table's logits: a row's entropy is about two thirds of the uniform one
SKIP_PROBABILITY = 0.9  # of the planted continuation where a skip-trigram applies
SKIP_REACH = 24  # words back in which the source of a skip-trigram counts
COPY_LENGTH = 12  # words in a copied stretch


@dataclass(frozen=True)
class PlantedTruth:
    """How a planted corpus was made; plain lists, so that ``records.write_json`` and ``read_json`` round-trip it.

    A fresh word follows ``bigram[previous word]``, unless the previous word is ``skip_destinations[i]`` and
    ``skip_sources[i]`` is among the ``skip_reach`` words before it: then it is ``skip_outs[i]`` with
    ``skip_probability``. ``repeat_share`` of the words are not fresh: they stand in copies, each ``copy_length`` words
    long, of earlier stretches of their document, which begin anywhere.
    """

    words: list[str]  # without their leading space
    start: list[float]  # probability of a document's first word
    bigram: list[list[float]]  # row: previous word, column: next word; rows sum to 1
    skip_sources: list[int]
    skip_destinations: list[int]
    skip_outs: list[int]
    skip_probability: float
    skip_reach: int  # words
    repeat_share: float  # exact, in every document
    copy_length: int  # words


def planted(config: PlantedCorpus) -> tuple[Iterator[str], PlantedTruth]:
    """What are the planted documents, and what is true of them?

    Every word is written with a space before it, so that a tokenizer with enough merges makes each word one token.
    A pure function of ``config``: the same seed gives the same text. Raises ValueError for what does not fit.
    """
    truth = _truth(config)
    return _documents(config, truth), truth


def planted_word_ids(config: PlantedCorpus, truth: PlantedTruth) -> Iterator[list[int]]:
    """Which words make up each document, as indices into ``truth.words``?"""
    generator = torch.Generator().manual_seed(config.seed + 1)
    n, n_copies = config.words_per_document, _n_copies(config)
    start = list(itertools.accumulate(truth.start))
    rows = [list(itertools.accumulate(row)) for row in truth.bigram]
    skips = dict(zip(truth.skip_destinations, zip(truth.skip_sources, truth.skip_outs, strict=True), strict=True))
    for _ in range(config.max_documents):
        free = torch.randperm(n - n_copies * (COPY_LENGTH - 1) - COPY_LENGTH, generator=generator)
        is_copy = [False] * COPY_LENGTH + (free < n_copies).tolist()
        chance = iter(torch.rand(3 * n, generator=generator, dtype=torch.float64).tolist())
        words: list[int] = []
        for copy in is_copy:
            if copy:
                begin = int(next(chance) * (len(words) - COPY_LENGTH + 1))
                words += words[begin : begin + COPY_LENGTH]
                continue
            source, out = skips.get(words[-1], (-1, -1)) if words else (-1, -1)
            if source in words[-1 - SKIP_REACH : -1] and next(chance) < SKIP_PROBABILITY:
                words.append(out)
            else:
                row = rows[words[-1]] if words else start
                words.append(min(bisect(row, next(chance)), len(row) - 1))
        yield words


def _documents(config: PlantedCorpus, truth: PlantedTruth) -> Iterator[str]:
    spaced = [" " + word for word in truth.words]
    for words in planted_word_ids(config, truth):
        yield "".join(spaced[w] for w in words)


def _truth(config: PlantedCorpus) -> PlantedTruth:
    names = [a + b + c for a in CONSONANTS for b in VOWELS for c in CONSONANTS]
    n, m, length = config.n_words, config.n_skip_trigrams, config.words_per_document
    complaints = []
    if not 2 <= n <= len(names):
        complaints.append(f"n_words: expected 2..{len(names)}, got {n}")
    if not 0 <= 3 * m <= n:
        complaints.append(f"n_skip_trigrams: expected 0..{n // 3} (three distinct words each), got {m}")
    if length <= 2 * COPY_LENGTH or length - _n_copies(config) * COPY_LENGTH < COPY_LENGTH:
        complaints.append(
            f"repeat_share: expected at least {COPY_LENGTH} fresh words and more than {2 * COPY_LENGTH} in all, got "
            f"{config.words_per_document} words of which {config.repeat_share:.0%} are copies; lower repeat_share or "
            "raise words_per_document"
        )
    if complaints:
        raise ValueError("\n".join(["The planted corpus does not fit:", *(f"  - corpus.{c}" for c in complaints)]))
    generator = torch.Generator().manual_seed(config.seed)
    logits = LOGIT_SCALE * torch.randn(n + 1, n, generator=generator, dtype=torch.float64)
    table = torch.softmax(logits, dim=-1)
    chosen = torch.randperm(n, generator=generator)[: 3 * m].tolist()
    return PlantedTruth(
        words=names[:n],
        start=table[n].tolist(),
        bigram=table[:n].tolist(),
        skip_sources=chosen[:m],
        skip_destinations=chosen[m : 2 * m],
        skip_outs=chosen[2 * m :],
        skip_probability=SKIP_PROBABILITY,
        skip_reach=SKIP_REACH,
        repeat_share=_n_copies(config) * COPY_LENGTH / length,
        copy_length=COPY_LENGTH,
    )


def _n_copies(config: PlantedCorpus) -> int:
    """Copied stretches a document."""
    return round(config.repeat_share * config.words_per_document / COPY_LENGTH)
