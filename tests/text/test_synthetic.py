"""The rules of a synthetic corpus can be measured in its text, and not in shuffled text."""

import math
import random
from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np
import pytest

from pathsum.config import SyntheticCorpus
from pathsum.text.corpus import documents
from pathsum.text.synthetic import (
    COPY_LENGTHS,
    KEY_SHARE,
    SELECTOR_SHARE,
    SyntheticTruth,
    synthetic_corpus,
    synthetic_text,
)

SHORTEST, LONGEST = COPY_LENGTHS
LOOKUPS = {"n_words": 53, "n_answers": 4}
Due = tuple[int, int]  # where a word is due by a rule, and which


def corpus(**changes: object) -> SyntheticCorpus:
    values = {
        "source": "synthetic", "name": "p", "validation_share": 0.1, "seed": 3, "n_words": 31, "zipf": 0.0,
        "bigram_spread": 1.0, "two_back_spread": 0.0, "n_skip_trigrams": 0, "questions": False, "n_answers": 0,
        "repeat_share": 0.0, "words_per_document": 211, "max_documents": 307,
    }  # fmt: skip
    return SyntheticCorpus.model_validate(values | changes)


def word_ids(config: SyntheticCorpus, truth: SyntheticTruth) -> list[list[int]]:
    number = {word: i for i, word in enumerate(truth.words)}
    return [[number[word] for word in document.split()] for document in documents(config)]


def marked(config: SyntheticCorpus) -> Iterator[tuple[list[int], list[bool], list[bool]]]:
    """Return the words of each document, which of them are copied, and which a rule determined."""
    for text in synthetic_text(config, synthetic_corpus(config)[1]):
        yield from zip(text.words.tolist(), text.copied.tolist(), text.ruled.tolist(), strict=True)


def shuffled(texts: list[list[int]]) -> list[list[int]]:
    return [random.Random(5).sample(text, len(text)) for text in texts]


def deviation(counts: np.ndarray, p: np.ndarray) -> float:
    """Return the largest deviation of ``counts`` from ``p``, in standard deviations. Rows of ``p`` sum to 1."""
    n = counts.sum(axis=-1, keepdims=True)
    enough = n * p * (1 - p) > 9
    return float(np.max(np.abs(counts - n * p)[enough] / np.sqrt(n * p * (1 - p))[enough]))


def ngram_counts(texts: list[list[int]], n_words: int, length: int) -> np.ndarray:
    counts = np.zeros((n_words,) * length)
    for text in texts:
        np.add.at(counts, tuple(text[i : len(text) - length + 1 + i] for i in range(length)), 1)
    return counts


# ---- tables ---------------------------------------------------------------------------------------------------------


def test_the_bigram_table_is_recovered_from_the_text_and_not_from_shuffled_text() -> None:
    config = corpus()
    truth = synthetic_corpus(config)[1]
    texts = word_ids(config, truth)
    table = np.array(truth.bigram)
    assert deviation(ngram_counts(texts, 31, 2), table) < 5  # 961 cells: 5 deviations happen once in a thousand runs
    assert deviation(ngram_counts(shuffled(texts), 31, 2), table) > 20


def test_the_word_two_back_tells_what_the_table_says_and_not_in_shuffled_text() -> None:
    """P(c | a b) ∝ bigram[b, c] · exp two_back[a, c]. Bigrams alone do not fit."""
    config = corpus(n_words=7, two_back_spread=1.0)
    truth = synthetic_corpus(config)[1]
    bigram, two_back = np.array(truth.bigram), np.array(truth.two_back)
    table = bigram[None] * np.exp(two_back)[:, None]
    table /= table.sum(-1, keepdims=True)
    texts = word_ids(config, truth)
    assert deviation(ngram_counts(texts, 7, 3), table) < 5
    assert deviation(ngram_counts(texts, 7, 3), np.broadcast_to(bigram, table.shape)) > 20
    assert deviation(ngram_counts(shuffled(texts), 7, 3), table) > 20
    assert synthetic_corpus(corpus(n_words=7))[1].two_back == []


def test_words_are_as_frequent_as_zipf_says() -> None:
    """Words are independent if no previous word has an effect: P(rank r) ∝ 1 / r."""
    shares = np.array([1 / r for r in range(1, 32)])
    shares /= shares.sum()
    config = corpus(zipf=1.0, bigram_spread=0.0)
    truth = synthetic_corpus(config)[1]
    np.testing.assert_allclose(truth.start, shares, rtol=1e-12)
    np.testing.assert_allclose(truth.bigram, np.tile(shares, (31, 1)), rtol=1e-12)
    assert deviation(ngram_counts(word_ids(config, truth), 31, 1), shares) < 5
    even = corpus(bigram_spread=0.0)
    assert deviation(ngram_counts(word_ids(even, truth), 31, 1), shares) > 20


# ---- rules ----------------------------------------------------------------------------------------------------------


def due(text: list[int], truth: SyntheticTruth) -> Iterator[Due]:
    """Return where rules apply and which word each determines, by the definitions in ``SyntheticTruth``."""
    yield from due_skips(text, truth)
    if truth.asker is not None:
        yield from due_answers(text, truth)
    if truth.keys:
        yield from due_lookups(text, truth)


def due_skips(text: list[int], truth: SyntheticTruth) -> Iterator[Due]:
    triples = zip(truth.skip_sources, truth.skip_destinations, truth.skip_outs, strict=True)
    rules = {destination: (source, out) for source, destination, out in triples}
    for at, before in enumerate(text[:-1]):
        if before in rules and rules[before][0] in text[max(0, at - truth.skip_reach) : at]:
            yield at + 1, rules[before][1]


def due_answers(text: list[int], truth: SyntheticTruth) -> Iterator[Due]:
    for at in (at for at, word in enumerate(text[:-1]) if word == truth.asker and truth.marker in text[1:at]):
        marker = max(i for i in range(1, at) if text[i] == truth.marker)
        answer = text[marker - 1]
        if answer not in (truth.marker, truth.asker) and truth.asker not in text[marker + 1 : at]:
            yield at + 1, answer


def due_lookups(text: list[int], truth: SyntheticTruth) -> Iterator[Due]:
    first, second = truth.selectors
    for at in range(2, len(text)):
        if text[at - 2] in first and text[at - 1] in second:
            drawer = truth.keys[first.index(text[at - 2])][second.index(text[at - 1])]
            stood = [i for i in range(at) if text[i] in drawer]
            pairs = list(pairwise(text[: at - 1]))
            if stood and (text[at - 2], text[at - 1]) not in pairs[stood[-1] :]:
                yield at, truth.answers[drawer.index(text[stood[-1]])]


def hits_deviation(texts: list[list[int]], truth: SyntheticTruth, rate: float) -> float:
    """Return by how many standard deviations due words occur more often than expected.

    Expected is the due word with probability ``rate``, and otherwise a word by the bigram table.
    """
    places = hits = expected = variance = 0.0
    for text in texts:
        for at, word in due(text, truth):
            places += 1
            p = rate + (1 - rate) * truth.bigram[text[at - 1]][word]
            hits, expected, variance = hits + (text[at] == word), expected + p, variance + p * (1 - p)
    assert places > 300  # else there is little to see
    return (hits - expected) / math.sqrt(variance)


@pytest.mark.parametrize("rule", [{"n_skip_trigrams": 7}, {"questions": True}, LOOKUPS])
def test_a_word_that_is_due_stands_there_as_often_as_the_truth_says_and_not_in_shuffled_text(
    rule: dict[str, object],
) -> None:
    config = corpus(**rule)
    truth = synthetic_corpus(config)[1]
    texts = word_ids(config, truth)
    assert abs(hits_deviation(texts, truth, truth.rule_probability)) < 4
    assert hits_deviation(texts, truth, 0.0) > 20
    assert hits_deviation(shuffled(texts), truth, truth.rule_probability) < -20


def test_without_its_source_a_destination_is_followed_as_the_table_says() -> None:
    """Also in documents that are shorter than the reach of a source."""
    for length, count in ((211, 307), (13, 5003)):
        config = corpus(n_skip_trigrams=7, words_per_document=length, max_documents=count)
        truth = synthetic_corpus(config)[1]
        outs = dict(zip(truth.skip_destinations, truth.skip_outs, strict=True))
        hits = expected = 0.0
        for text in word_ids(config, truth):
            told = {at for at, _ in due(text, truth)}
            for at, (word, following) in enumerate(pairwise(text), 1):
                if word in outs and at not in told:
                    hits, expected = hits + (following == outs[word]), expected + truth.bigram[word][outs[word]]
        assert expected > 50
        assert abs(hits - expected) < 4 * math.sqrt(expected)


def test_the_words_of_the_rules_are_distinct() -> None:
    truth = synthetic_corpus(corpus(n_words=58, n_skip_trigrams=10, questions=True, n_answers=2))[1]
    chosen = [*truth.skip_sources, *truth.skip_destinations, *truth.skip_outs, truth.marker, truth.asker]
    chosen += [*chain(*truth.selectors), *chain(*chain(*truth.keys)), *truth.answers]
    assert sorted(c for c in chosen if c is not None) == list(range(58))


def test_lookups_begin_and_find_keys_by_their_shares() -> None:
    """The first word is followed by each of the second words equally often, with the probability of a rule."""
    truth = synthetic_corpus(corpus(**LOOKUPS, zipf=1.0, bigram_spread=0.0))[1]
    (first, second), keys = truth.selectors, list(chain(*chain(*truth.keys)))
    for word, row in enumerate(truth.bigram):
        p = truth.rule_probability if word in first else 0.0
        assert [row[w] for w in first] == pytest.approx([(1 - p) * SELECTOR_SHARE / 3] * 3, rel=1e-12)
        assert [row[w] for w in keys] == pytest.approx([(1 - p) * KEY_SHARE / 36] * 36, rel=1e-12)
        assert sum(row) == pytest.approx(1, rel=1e-12)
    followed = np.array(truth.bigram)[first][:, second] - (1 - truth.rule_probability) * np.array(truth.start)[second]
    assert followed == pytest.approx(truth.rule_probability / 3, rel=1e-12)
    plain = synthetic_corpus(corpus())[1]
    assert plain.keys == plain.answers == []


def test_a_word_is_marked_as_ruled_only_where_it_was_due_and_mostly_there_and_never_in_copies() -> None:
    for share in (0.0, 0.5):
        config = corpus(n_words=73, n_skip_trigrams=5, questions=True, n_answers=4, repeat_share=share)
        truth, n_due, n_ruled = synthetic_corpus(config)[1], 0, 0
        for words, copied, ruled in marked(config):
            told = dict(due(words, truth))
            assert all(told.get(at) == words[at] and not copied[at] for at, is_ruled in enumerate(ruled) if is_ruled)
            n_due, n_ruled = n_due + len(told), n_ruled + sum(ruled)
        p = truth.rule_probability
        assert n_ruled > 300
        assert share or abs(n_ruled - p * n_due) < 4 * math.sqrt(p * (1 - p) * n_due)
    assert not any(any(ruled) for _, _, ruled in marked(corpus()))  # without rules, none


# ---- copies ---------------------------------------------------------------------------------------------------------


def runs(copied: list[bool]) -> list[tuple[int, int]]:
    """Return begin and end of each run of copied words, including the unmarked first word of the copy."""
    edges = [at for at in range(1, len(copied)) if copied[at] != copied[at - 1]] + [len(copied)]
    return [(begin - 1, end) for begin, end in zip(edges[::2], edges[1::2], strict=False)]


def sources(words: list[int], begin: int, end: int) -> list[int]:
    """Return the positions before ``begin`` at which the same words occur."""
    return [s for s in range(begin - (end - begin) + 1) if words[s : s + end - begin] == words[begin:end]]


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_the_share_of_copied_words_is_that_of_the_truth(share: float) -> None:
    """Fresh stretches and copies alternate about fifty times per document.

    The standard deviation of the share is at most 0.004, and the first stretch may be cut. Of the twelve words of an
    average copy, eleven are marked.
    """
    config = corpus(repeat_share=share, words_per_document=2003, max_documents=53)
    found = np.mean([copied[LONGEST:] for _, copied, _ in marked(config)]) * 12 / 11
    assert abs(found - share) < 0.02
    assert not any(any(copied) for _, copied, _ in marked(corpus()))


def test_copies_are_of_every_length_and_begin_anywhere_at_no_fixed_distance() -> None:
    """Tested on the first copy of each document, which is always whole and has at least six words that occur once
    before."""
    config = corpus(repeat_share=0.3, n_words=211, max_documents=509)
    lengths, places, distances = Counter[int](), [], Counter[int]()
    for words, copied, _ in marked(config):
        begin, end = runs(copied)[0]
        (source,) = sources(words, begin, end)
        lengths[end - begin] += 1
        distances[begin - source] += 1
        places.append((source + 0.5) / (begin - (end - begin) + 1))
    assert set(lengths) == set(range(SHORTEST, LONGEST + 1))
    each = 509 / len(lengths)
    assert sum((n - each) ** 2 / each for n in lengths.values()) < 32.9  # χ² of 12 degrees: once in a thousand runs
    assert abs(np.mean(places) - 0.5) < 4 / math.sqrt(12 * 509)  # of even ones, from 0 to 1
    assert min(places) < 0.02 < 0.98 < max(places)
    assert max(distances.values()) < 0.1 * 509


def test_every_copied_word_continues_an_earlier_stretch_and_the_first_of_a_copy_is_not_marked() -> None:
    """Documents are short, so that many copies begin at the first word of the document."""
    config = corpus(repeat_share=0.6, n_words=211, words_per_document=64, max_documents=1009)
    from_the_beginning = 0
    for words, copied, _ in marked(config):
        assert not any(copied[: LONGEST + 1])
        for begin, end in runs(copied):
            where = sources(words, begin, end)
            assert where and (end - begin >= SHORTEST or end == len(words))  # noqa: PT018
            from_the_beginning += 0 in where
    assert from_the_beginning > 30


# ---- the whole ------------------------------------------------------------------------------------------------------

EVERYTHING = {
    "n_words": 73, "zipf": 1.0, "two_back_spread": 0.5, "n_skip_trigrams": 5, "questions": True, "n_answers": 4,
    "repeat_share": 0.2,
}  # fmt: skip


def test_the_same_seed_gives_the_same_text_and_another_seed_another() -> None:
    config = corpus(**EVERYTHING, max_documents=3)
    assert list(documents(config)) == list(documents(config))
    assert list(documents(config)) != list(documents(config.model_copy(update={"seed": 4})))
    assert all(len(document.split()) == 211 and document.startswith(" ") for document in documents(config))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_answers": 1}, ["n_answers: expected 0, or 2 or more, got 1"]),
        ({"n_answers": 3}, ["n_words: expected 36..2000, got 31"]),
        ({"repeat_share": 0.2, "words_per_document": 18}, ["repeat_share: expected 0, or below 1 in documents"]),
        ({"repeat_share": 1, "n_words": 2003}, ["n_words: expected 5..2000, got 2003", "repeat_share: expected 0, or"]),
    ],
)
def test_everything_that_does_not_fit_is_named(change: dict[str, object], said: list[str]) -> None:
    with pytest.raises(ValueError, match="The synthetic corpus does not fit") as caught:
        synthetic_corpus(corpus(**change))
    lines = str(caught.value).splitlines()[1:]
    assert all(line.startswith(f"  - corpus.{known}") for line, known in zip(lines, said, strict=True))
    synthetic_corpus(corpus(words_per_document=18))  # without copies, documents may be short
