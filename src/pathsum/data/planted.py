"""What does text look like whose bigrams, skip-trigrams and repetition are known?

The positive control of the whole pipeline: whatever is measured on this corpus can be compared with ``PlantedTruth``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from pathsum.config import PlantedCorpus

CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxz", "aeiou"
RULE_PROBABILITY = 0.9  # of the planted continuation where a skip-trigram or a question applies
SKIP_REACH = 24  # words back in which the source of a skip-trigram counts
COPY_LENGTHS = (6, 18)  # words in a copied stretch: of one length only, a head would learn to look that far back
QUESTION_SHARE = 0.08  # of fresh words, for the marker and for the word that asks
TOGETHER = 512  # documents made at a time


@dataclass(frozen=True)
class PlantedTruth:
    """How a planted corpus was made; plain lists, so that ``records.write_json`` and ``read_json`` round-trip it.

    A fresh word is drawn with log-probabilities ``log bigram[word before] + two_back[word before that]``, up to a
    constant, unless

    * the word before is ``skip_destinations[i]`` and ``skip_sources[i]`` is among the ``skip_reach`` words before it:
      then it is ``skip_outs[i]`` with ``rule_probability``; or
    * the word before is ``asker``: then it is, with ``rule_probability``, the word that stood before the last
      ``marker``, if that is an ordinary word and was not asked for yet.

    After the first ``copy_lengths[1]`` words, about ``repeat_share`` of the words are not fresh: they stand in copies
    of earlier stretches of their document, which begin anywhere and are of any length in ``copy_lengths``.
    """

    words: list[str]  # without their leading space; the commonest first, but for those of questions
    start: list[float]  # probability of a document's first word
    bigram: list[list[float]]  # row: previous word, column: next word; rows sum to 1
    two_back: list[list[float]]  # nats; empty for none
    skip_sources: list[int]
    skip_destinations: list[int]
    skip_outs: list[int]
    skip_reach: int  # words
    marker: int | None
    asker: int | None
    rule_probability: float
    repeat_share: float
    copy_lengths: list[int]  # words: the shortest and the longest


@dataclass(frozen=True)
class PlantedText:
    """Some documents of equal length, and where which rule made the word."""

    words: Int64[Tensor, "document word"]  # indices into ``truth.words``
    copied: Bool[Tensor, "document word"]  # from the second word of each copy on: the first cannot be foretold
    ruled: Bool[Tensor, "document word"]  # a skip-trigram's out or a question's answer was due, and stands there


def planted(config: PlantedCorpus) -> tuple[Iterator[str], PlantedTruth]:
    """What are the planted documents, and what is true of them?

    Every word is written with a space before it, so that a tokenizer with enough merges makes each word one token.
    A pure function of ``config``: the same seed gives the same text. Raises ValueError for what does not fit.
    """
    truth = _truth(config)
    return _documents(config, truth), truth


def planted_text(config: PlantedCorpus, truth: PlantedTruth) -> Iterator[PlantedText]:
    """Which words make up the documents, and by which rules? ``TOGETHER`` documents at a time."""
    generator = torch.Generator().manual_seed(config.seed + 1)
    for begin in range(0, config.max_documents, TOGETHER):
        yield _write(min(TOGETHER, config.max_documents - begin), config.words_per_document, truth, generator)


def _write(n: int, length: int, truth: PlantedTruth, generator: torch.Generator) -> PlantedText:
    origin = _copies(n, length, truth, generator)
    bigram = torch.tensor(truth.bigram, dtype=torch.float64)
    two_back = torch.tensor(truth.two_back, dtype=torch.float64).exp()
    every, n_words = torch.arange(n), len(truth.words)
    sources, outs = torch.full((2, n_words), -1)
    sources[truth.skip_destinations] = torch.tensor(truth.skip_sources, dtype=torch.long)
    outs[truth.skip_destinations] = torch.tensor(truth.skip_outs, dtype=torch.long)
    words, ruled = torch.zeros(n, length, dtype=torch.long), torch.zeros(n, length, dtype=torch.bool)
    last = torch.full((n, n_words), -1 - truth.skip_reach)  # where each word stood last: nowhere, and out of reach
    asked = torch.zeros(n, dtype=torch.long)  # the marker that was asked for last
    for t in range(length):
        if t == 0:
            fresh = torch.tensor(truth.start, dtype=torch.float64).multinomial(n, True, generator=generator)
        else:
            before = words[:, t - 1]
            p = bigram[before] * two_back[words[:, t - 2]] if t > 1 and truth.two_back else bigram[before]
            fresh = p.multinomial(1, generator=generator)[:, 0]
            obeys = torch.rand(n, generator=generator) < truth.rule_probability
            source = sources[before]
            skips = obeys & (source >= 0) & (last[every, source] >= t - 1 - truth.skip_reach)
            fresh = torch.where(skips, outs[before], fresh)
            ruled[:, t] = skips
            if truth.asker is not None:
                marked, asks = last[:, truth.marker], before == truth.asker
                answer = words[every, (marked - 1).clamp(min=0)]
                ordinary = (answer != truth.marker) & (answer != truth.asker)
                answers = obeys & asks & ordinary & (marked > asked)
                fresh = torch.where(answers, answer, fresh)
                ruled[:, t] |= answers
                asked = torch.where(asks, marked, asked)
        copy = origin[:, t]
        words[:, t] = torch.where(copy >= 0, words[every, copy.clamp(min=0)], fresh)
        ruled[:, t] &= copy < 0
        last[every, words[:, t]] = t
    copied = torch.zeros_like(ruled)
    copied[:, 1:] = (origin[:, :-1] >= 0) & (origin[:, 1:] == origin[:, :-1] + 1)
    return PlantedText(words, copied, ruled)


def _copies(n: int, length: int, truth: PlantedTruth, generator: torch.Generator) -> Int64[Tensor, "document word"]:
    """Of which earlier position is each word a copy? −1 for fresh words. Fresh stretches and copies take turns."""
    origin = torch.full((n, length), -1)
    if truth.repeat_share == 0:
        return origin
    shortest, longest = truth.copy_lengths
    mean_fresh = (shortest + longest) / 2 * (1 - truth.repeat_share) / truth.repeat_share
    for row in origin:
        chance = iter(torch.rand(3 * length, generator=generator, dtype=torch.float64).tolist())
        at = longest
        while at < length:
            at += round(next(chance) * 2 * mean_fresh)
            copy = shortest + int(next(chance) * (longest - shortest + 1))
            begin = int(next(chance) * (at - copy + 1))
            row[at : at + copy] = torch.arange(begin, begin + copy)[: max(0, length - at)]
            at += copy
    return origin


def _documents(config: PlantedCorpus, truth: PlantedTruth) -> Iterator[str]:
    spaced = [" " + word for word in truth.words]
    for text in planted_text(config, truth):
        for words in text.words.tolist():
            yield "".join(spaced[w] for w in words)


def _truth(config: PlantedCorpus) -> PlantedTruth:
    names = [a + b + c for a in CONSONANTS for b in VOWELS for c in CONSONANTS]
    _require_fit(config, len(names))
    generator = torch.Generator().manual_seed(config.seed)
    n, m = config.n_words, config.n_skip_trigrams
    common = -config.zipf * torch.arange(1, n + 1, dtype=torch.float64).log()
    chosen = torch.randperm(n, generator=generator)[: 3 * m + 2].tolist()
    if config.questions:
        common[chosen[-2:]] = -math.inf
        common[chosen[-2:]] = common.logsumexp(0) + math.log(QUESTION_SHARE / (1 - 2 * QUESTION_SHARE))
    logits = common + config.bigram_spread * torch.randn(n + 1, n, generator=generator, dtype=torch.float64)
    two_back = config.two_back_spread * torch.randn(n, n, generator=generator, dtype=torch.float64)
    table = torch.softmax(logits, dim=-1)
    return PlantedTruth(
        words=names[:n],
        start=table[n].tolist(),
        bigram=table[:n].tolist(),
        two_back=two_back.tolist() if config.two_back_spread else [],
        skip_sources=chosen[:m],
        skip_destinations=chosen[m : 2 * m],
        skip_outs=chosen[2 * m : 3 * m],
        skip_reach=SKIP_REACH,
        marker=chosen[-2] if config.questions else None,
        asker=chosen[-1] if config.questions else None,
        rule_probability=RULE_PROBABILITY,
        repeat_share=config.repeat_share,
        copy_lengths=list(COPY_LENGTHS),
    )


def _require_fit(config: PlantedCorpus, n_names: int) -> None:
    most, longest = max(0, config.n_words - 2) // 3, max(COPY_LENGTHS)
    complaints = []
    if not 5 <= config.n_words <= n_names:
        complaints.append(f"n_words: expected 5..{n_names}, got {config.n_words}")
    if not 0 <= config.n_skip_trigrams <= most:
        complaints.append(
            f"n_skip_trigrams: expected 0..{most} (three distinct words each, and two more), got "
            f"{config.n_skip_trigrams}"
        )
    if config.repeat_share == 1 or (config.repeat_share and config.words_per_document <= longest):
        complaints.append(
            f"repeat_share: expected some fresh words and documents of more than {longest} words, got "
            f"{config.repeat_share:.0%} copies in {config.words_per_document} words; lower repeat_share or raise "
            "words_per_document"
        )
    if not all(map(math.isfinite, (config.zipf, config.bigram_spread, config.two_back_spread))):
        complaints.append("zipf, bigram_spread, two_back_spread: expected finite numbers")
    if complaints:
        raise ValueError("\n".join(["The planted corpus does not fit:", *(f"  - corpus.{c}" for c in complaints)]))
