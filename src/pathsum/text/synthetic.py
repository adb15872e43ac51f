"""Synthetic text with known bigrams, skip-trigrams and repetitions: the positive control (docs/framework.md §11.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from pathsum.config import SyntheticCorpus
from pathsum.text.corpus import Source
from pathsum.text.synthetic_rules import NONE, Draft, Lookups, Questions, Rule, SkipTrigrams

CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxz", "aeiou"
RULE_PROBABILITY = 0.9  # probability that a rule determines the next word, where the rule applies
SKIP_REACH = 24  # largest distance in words between source and destination of a skip-trigram
COPY_LENGTHS = (6, 18)  # words in a copied stretch; with a fixed length, a head could learn a fixed distance
QUESTION_SHARE = 0.16  # share of the marker among fresh words; the asking word has the same share
SELECTORS = 3  # number of possible first words of a lookup pair, and of second words; with 2, one word would suffice
SELECTOR_SHARE, KEY_SHARE = 0.3, 0.35  # shares of fresh words: first words of lookups, and keys
BATCH = 512  # documents generated at a time


@dataclass(frozen=True)
class SyntheticTruth:
    """The rules of a synthetic corpus. Words are given by their index in ``words``; lists of an absent rule are empty.

    A word is *fresh* if it is not part of a copy. A fresh word has the log-probability ``log bigram[previous word] +
    two_back[word two back]``, up to a constant. A rule that applies determines the next fresh word with probability
    ``rule_probability``:

    * skip-trigram: after ``skip_destinations[i]`` comes ``skip_outs[i]``, if ``skip_sources[i]`` is among the
      ``skip_reach`` words before it.
    * question: after ``asker`` comes the word before the last ``marker``, unless that word is a marker or an asker, or
      this marker was asked about before.
    * lookup: after the pair ``selectors[0][i] selectors[1][j]`` comes ``answers[k]``, where the last word from
      ``keys[i][j]`` was ``keys[i][j][k]``, unless that occurrence was looked up before.

    About ``repeat_share`` of the words after the first ``copy_lengths[1]`` are in copies of stretches anywhere before
    them in the document, of any length between the two ``copy_lengths``.
    """

    words: list[str]  # without leading space; in descending frequency, except words whose frequency a rule sets
    start: list[float]  # probability of a document's first word
    bigram: list[list[float]]  # row: previous word, column: next word; rows sum to 1
    two_back: list[list[float]]  # row: word two back, column: next word, in nats; empty if it has no effect
    skip_sources: list[int]
    skip_destinations: list[int]
    skip_outs: list[int]
    skip_reach: int  # words
    marker: int | None  # None without questions, as ``asker``
    asker: int | None
    selectors: list[list[int]]  # first words, second words
    keys: list[list[list[int]]]  # by first word, second word, answer
    answers: list[int]
    rule_probability: float
    repeat_share: float
    copy_lengths: list[int]  # shortest and longest copy, in words


@dataclass(frozen=True)
class SyntheticText:
    """Documents of equal length, with marks at the words that can be predicted."""

    words: Int64[Tensor, "document word"]  # indices into ``truth.words``
    copied: Bool[Tensor, "document word"]  # the words of each copy except the first, which cannot be predicted
    ruled: Bool[Tensor, "document word"]  # words that a rule determined


def synthetic_corpus(config: SyntheticCorpus) -> tuple[Iterator[str], SyntheticTruth]:
    """Return the documents of a synthetic corpus and its ground truth. Raises ValueError if its rules do not fit."""
    truth = _truth(config)
    texts = (words for text in synthetic_text(config, truth) for words in text.words.tolist())
    return ("".join(" " + truth.words[word] for word in words) for words in texts), truth


SOURCE = Source(SyntheticCorpus, lambda config: synthetic_corpus(config)[0])


def synthetic_text(config: SyntheticCorpus, truth: SyntheticTruth) -> Iterator[SyntheticText]:
    """Yield the documents as indices of words, with marks, up to ``BATCH`` documents at a time."""
    generator = torch.Generator().manual_seed(config.seed + 1)
    for begin in range(0, config.max_documents, BATCH):
        yield _write(min(BATCH, config.max_documents - begin), config.words_per_document, truth, generator)


def _write(n: int, length: int, truth: SyntheticTruth, generator: torch.Generator) -> SyntheticText:
    origin = _copies(n, length, truth, generator)
    bigram = torch.tensor(truth.bigram, dtype=torch.float64)
    two_back = torch.tensor(truth.two_back, dtype=torch.float64).exp()
    rules, draft = [*_rules(n, truth)], Draft(n, length, len(truth.words))
    ruled = torch.zeros(n, length, dtype=torch.bool)
    for t in range(length):
        if t == 0:
            fresh = torch.tensor(truth.start, dtype=torch.float64).multinomial(n, True, generator=generator)
        else:
            p = bigram[draft.back(1)] * (two_back[draft.back(2)] if t > 1 and truth.two_back else 1)
            fresh = p.multinomial(1, generator=generator)[:, 0]
            obeys = torch.rand(n, generator=generator) < truth.rule_probability
            for rule in rules:
                due = rule.due(draft)
                fresh = torch.where(obeys & (due != NONE), due, fresh)
                ruled[:, t] |= obeys & (due != NONE)
        copy = origin[:, t]
        draft.write(torch.where(copy >= 0, draft.words[draft.rows, copy.clamp(min=0)], fresh))
        ruled[:, t] &= copy < 0
    copied = torch.zeros_like(ruled)
    copied[:, 1:] = (origin[:, :-1] >= 0) & (origin[:, 1:] == origin[:, :-1] + 1)
    return SyntheticText(draft.words, copied, ruled)


def _rules(n: int, truth: SyntheticTruth) -> Iterator[Rule]:
    if truth.skip_sources:
        triples = truth.skip_sources, truth.skip_destinations, truth.skip_outs
        yield SkipTrigrams(*triples, truth.skip_reach, len(truth.words))
    if truth.marker is not None and truth.asker is not None:
        yield Questions(truth.marker, truth.asker, n)
    if truth.keys:
        yield Lookups(truth.selectors, truth.keys, truth.answers, n)


def _copies(n: int, length: int, truth: SyntheticTruth, generator: torch.Generator) -> Int64[Tensor, "document word"]:
    """Return the earlier position that each word copies, or −1 for fresh words."""
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


def _truth(config: SyntheticCorpus) -> SyntheticTruth:
    names = [a + b + c for a in CONSONANTS for b in VOWELS for c in CONSONANTS]
    _require_fit(config, len(names))
    generator = torch.Generator().manual_seed(config.seed)
    n, m, k = config.n_words, config.n_skip_trigrams, config.n_answers
    deal = iter(torch.randperm(n, generator=generator).tolist())
    sources, destinations, outs = (list(islice(deal, m)) for _ in range(3))
    marker, asker = islice(deal, 2) if config.questions else (None, None)
    first, second, answers = (list(islice(deal, count if k else 0)) for count in (SELECTORS, SELECTORS, k))
    keys = [[list(islice(deal, k)) for _ in second] for _ in first]
    parts = (([marker, asker], 2 * QUESTION_SHARE), (first, SELECTOR_SHARE), ([*chain(*chain(*keys))], KEY_SHARE))
    shares = [([w for w in words if w is not None], share) for words, share in parts]
    common = _with_shares(-config.zipf * torch.arange(1, n + 1, dtype=torch.float64).log(), shares)
    logits = common + config.bigram_spread * torch.randn(n + 1, n, generator=generator, dtype=torch.float64)
    two_back = config.two_back_spread * torch.randn(n, n, generator=generator, dtype=torch.float64)
    table = torch.softmax(logits, dim=-1)
    table[first] *= 1 - RULE_PROBABILITY
    table[torch.tensor(first, dtype=torch.long)[:, None], second] += RULE_PROBABILITY / SELECTORS
    return SyntheticTruth(
        words=names[:n], start=table[n].tolist(), bigram=table[:n].tolist(),
        two_back=two_back.tolist() if config.two_back_spread else [],
        skip_sources=sources, skip_destinations=destinations, skip_outs=outs, skip_reach=SKIP_REACH,
        marker=marker, asker=asker, selectors=[first, second], keys=keys, answers=answers,
        rule_probability=RULE_PROBABILITY, repeat_share=config.repeat_share, copy_lengths=list(COPY_LENGTHS),
    )  # fmt: skip


def _with_shares(logits: Float64[Tensor, " word"], shares: list[tuple[list[int], float]]) -> Float64[Tensor, " word"]:
    """Return log-frequencies, up to a constant, that give each list of words its share."""
    shares = [(words, share) for words, share in shares if words]
    named = [word for words, _ in shares for word in words]
    logits = logits.log_softmax(0).index_fill(0, torch.tensor(named, dtype=torch.long), -math.inf)
    rest = logits.logsumexp(0) - math.log1p(-sum(share for _, share in shares))
    for words, share in shares:
        logits[words] = rest + math.log(share / len(words))
    return logits


def _require_fit(config: SyntheticCorpus, n_names: int) -> None:
    lookups = 2 * SELECTORS + config.n_answers * (1 + SELECTORS**2) if config.n_answers else 0
    needed = max(5, 3 * config.n_skip_trigrams + 2 * config.questions + lookups)
    long = max(COPY_LENGTHS) < config.words_per_document and config.repeat_share < 1
    copies = f"{config.repeat_share} in documents of {config.words_per_document} words"
    rules = {
        f"n_words: expected {needed}..{n_names}, got {config.n_words}": needed <= config.n_words <= n_names,
        f"n_answers: expected 0, or 2 or more, got {config.n_answers}": config.n_answers != 1,
        f"repeat_share: expected 0, or below 1 in documents of more than {max(COPY_LENGTHS)} words, got {copies}": (
            long or not config.repeat_share
        ),
    }
    if wrong := [complaint for complaint, fits in rules.items() if not fits]:
        raise ValueError("\n  - corpus.".join(["The synthetic corpus does not fit:", *wrong]))
