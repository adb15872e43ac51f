"""The planted corpus: what its truth says can be counted in its text, and not in shuffled text."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from pathsum.config import PlantedCorpus
from pathsum.data.corpus import documents
from pathsum.data.planted import PlantedTruth, planted
from pathsum.storage import read_json, write_json


def corpus(**changes: object) -> PlantedCorpus:
    values = {
        "source": "planted", "name": "p", "validation_share": 0.1, "seed": 3, "n_words": 31, "n_skip_trigrams": 0,
        "repeat_share": 0.0, "words_per_document": 211, "max_documents": 307,
    }  # fmt: skip
    return PlantedCorpus.model_validate(values | changes)


def word_ids(config: PlantedCorpus, truth: PlantedTruth) -> list[list[int]]:
    number = {word: i for i, word in enumerate(truth.words)}
    return [[number[word] for word in document.split()] for document in documents(config)]


def bigram_deviation(texts: list[list[int]], truth: PlantedTruth) -> float:
    """Largest deviation of a counted P(next | word) from the table, in standard deviations."""
    counts = np.zeros((len(truth.words), len(truth.words)))
    for text in texts:
        np.add.at(counts, (text[:-1], text[1:]), 1)
    p, n = np.array(truth.bigram), counts.sum(axis=1, keepdims=True)
    enough = n * p * (1 - p) > 9
    return float(np.max(np.abs(counts - n * p)[enough] / np.sqrt(n * p * (1 - p))[enough]))


def shuffled(texts: list[list[int]]) -> list[list[int]]:
    return [random.Random(5).sample(text, len(text)) for text in texts]


def test_the_bigram_table_is_recovered_from_the_text_and_not_from_shuffled_text() -> None:
    config = corpus()
    truth = planted(config)[1]
    texts = word_ids(config, truth)
    assert bigram_deviation(texts, truth) < 5  # 961 cells: 5 deviations happen once in a thousand runs
    assert bigram_deviation(shuffled(texts), truth) > 20


def skip_trigram_shares(texts: list[list[int]], truth: PlantedTruth) -> tuple[float, float]:
    """Share of outs after a destination, with its source within reach, and without."""
    hits, places = {True: 0, False: 0}, {True: 0, False: 0}
    triples = list(zip(truth.skip_sources, truth.skip_destinations, truth.skip_outs, strict=True))
    for text in texts:
        for source, dest, out in triples:
            for q in (q for q, word in enumerate(text[:-1]) if word == dest):
                applies = source in text[max(0, q - truth.skip_reach) : q]
                places[applies] += 1
                hits[applies] += text[q + 1] == out
    return hits[True] / places[True], hits[False] / places[False]


def test_the_skip_trigrams_are_recovered_from_the_text_and_not_from_shuffled_text() -> None:
    config = corpus(n_skip_trigrams=7)
    truth = planted(config)[1]
    texts = word_ids(config, truth)
    by_chance = np.mean([truth.bigram[d][o] for d, o in zip(truth.skip_destinations, truth.skip_outs, strict=True)])
    with_source, without = skip_trigram_shares(texts, truth)
    assert truth.skip_probability - 0.03 < with_source < truth.skip_probability + 0.1 * by_chance + 0.05
    assert without < 0.2
    assert abs(np.subtract(*skip_trigram_shares(shuffled(texts), truth))) < 0.05


def repeated_stretches(texts: list[list[int]], length: int) -> float:
    """Share of words that end a stretch of ``length`` words seen before in their document."""
    found = total = 0
    for text in texts:
        seen: set[tuple[int, ...]] = set()
        for end in range(length, len(text) + 1):
            stretch = tuple(text[end - length : end])
            found += stretch in seen
            seen.add(stretch)
        total += len(text)
    return found / total


def test_the_repeated_share_is_recovered_from_the_text_and_not_from_shuffled_text() -> None:
    config = corpus(repeat_share=0.3, n_words=101)
    truth = planted(config)[1]
    assert truth.repeat_share == round(0.3 * 211 / truth.copy_length) * truth.copy_length / 211
    texts = word_ids(config, truth)
    length = 6  # of each copied stretch of 12 words, 7 end a repeated stretch of 6
    expected = truth.repeat_share * (truth.copy_length - length + 1) / truth.copy_length
    assert expected <= repeated_stretches(texts, length) < expected + 0.05
    assert repeated_stretches(word_ids(corpus(n_words=101), truth), length) < 0.02
    assert repeated_stretches(shuffled(texts), length) < 0.001


def test_the_same_seed_gives_the_same_text_and_another_seed_another() -> None:
    config = corpus(max_documents=3, repeat_share=0.2, n_skip_trigrams=5)
    assert list(documents(config)) == list(documents(config))
    assert list(documents(config)) != list(documents(config.model_copy(update={"seed": 4})))
    assert all(len(document.split()) == 211 and document.startswith(" ") for document in documents(config))


def test_the_truth_round_trips_through_json(tmp_path: Path) -> None:
    truth = planted(corpus(n_skip_trigrams=5))[1]
    write_json(tmp_path / "truth.json", truth)
    assert read_json(tmp_path / "truth.json", PlantedTruth) == truth


def test_everything_that_does_not_fit_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="The planted corpus does not fit") as caught:
        planted(corpus(n_words=2003, n_skip_trigrams=1009, repeat_share=0.99))
    assert "corpus.n_words: expected 2..2000, got 2003" in str(caught.value)
    assert "corpus.n_skip_trigrams: expected 0..667 (three distinct words each), got 1009" in str(caught.value)
    assert "corpus.repeat_share: expected at least 12 fresh words" in str(caught.value)
