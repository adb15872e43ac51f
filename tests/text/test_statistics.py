"""Corpus statistics: counts and losses equal those computed by hand, with dense and with sparse tables."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save
from scipy import sparse

from pathsum.config import ExtractConfig, SyntheticCorpus, TokenizerConfig
from pathsum.records.corpus import CorpusSummary, NGramRow
from pathsum.text import frequent as ngrams
from pathsum.text import statistics
from pathsum.text.smoothing import CANDIDATES, DIRICHLET, DISCOUNT, KNESER_NEY, BigramTable, Smoothing, best_smoothing
from pathsum.text.statistics import BigramRows, CorpusStatistics, corpus_statistics, pair_counts, repeated_share
from pathsum.text.tokenizer import load_tokenizer, vocabulary
from pathsum.text.tokenizing import tokenize_corpus
from pathsum.text.windows import Windows

HOW = ExtractConfig(
    held_out_windows=53,
    windows_per_document=4,
    windows=7,
    repeated_windows=3,
    exactness_windows=1,
    top_k=7,
    rotations=10,
)
BIGRAM = np.array([[0, 3, 1], [2, 0, 0], [0, 0, 0]])  # token 2 is never followed
UNIGRAM = np.array([2, 3, 1])  # u = (3, 4, 2) / 9
HELD_OUT = sparse.csr_array(np.array([[0, 1, 0], [0, 0, 1], [0, 2, 0]]))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        # P(1|0), P(2|1), P(1|2), each written out
        (Smoothing(DIRICHLET, 2.0), [(3 + 2 * 4 / 9) / (4 + 2), (0 + 2 * 2 / 9) / (2 + 2), 4 / 9]),
        (Smoothing(DISCOUNT, 0.5), [(2.5 + 0.5 * 2 * 4 / 9) / 4, (0.5 * 1 * 2 / 9) / 2, 4 / 9]),
        # continuation counts (1, 1, 1), so q = 1/3 each
        (Smoothing(KNESER_NEY, 0.5), [(2.5 + 0.5 * 2 / 3) / 4, (0.5 * 1 / 3) / 2, 1 / 3]),
    ],
)
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_smoothed_bigrams_equal_those_by_hand(how: Smoothing, expected: list[float], kind: type) -> None:
    table = BigramTable.of(kind(BIGRAM), UNIGRAM)
    np.testing.assert_allclose(table.probabilities(np.array([0, 1, 2]), np.array([1, 2, 1]), how), expected, rtol=1e-14)
    every = table.probabilities(np.arange(3)[:, None], np.arange(3)[None, :], how)
    np.testing.assert_allclose(every.sum(axis=1), 1.0, rtol=1e-14)


def test_the_best_of_all_smoothings_is_taken() -> None:
    table = BigramTable.of(BIGRAM, UNIGRAM)
    losses = []
    for how in CANDIDATES:
        p = table.probabilities(np.array([0, 1, 2, 2]), np.array([1, 2, 1, 1]), how)
        losses.append(-np.log(p).mean())
    best = best_smoothing(table, HELD_OUT)
    assert best == CANDIDATES[int(np.argmin(losses))]


def test_pairs_are_counted_with_bos_first_in_each_window(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows(np.array([3, 4, 3, 4, 4, 1, 2]), 3)  # BOS 3 4 3 | BOS 4 4 1
    expected = np.zeros((5, 5), dtype=np.int64)
    for a, b in [(0, 3), (3, 4), (4, 3), (0, 4), (4, 4), (4, 1)]:
        expected[a, b] += 1
    np.testing.assert_array_equal(pair_counts(windows, 5).toarray(), expected)
    monkeypatch.setattr(statistics, "CHUNK", 3)  # the way of large vocabularies, a window at a time
    np.testing.assert_array_equal(pair_counts(windows, 5).toarray(), expected)


def test_a_token_is_repeated_where_its_trigram_stood_before_in_the_window() -> None:
    tokens = np.array([1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5, 6, 7, 8])  # windows of 7: 3 and 1 repeated in the first, none
    assert repeated_share(Windows(tokens, 7), 11) == 2 / 14


def test_skip_trigrams_are_those_whose_source_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Token 5 is followed by 6 after a 1, and by 7 after a 2. No other token predicts anything."""
    one, two = [1, 3, 5, 6, 8, 9, 10], [2, 3, 5, 7, 8, 9, 10]
    windows = Windows(np.array((one + two) * 13), 7)
    bigram = pair_counts(windows, 11)
    for area in (1 << 22, 1):  # all windows at once, then one at a time
        monkeypatch.setattr(ngrams, "AREA", area)
        found = ngrams.skip_trigrams(windows, bigram, 5)
        assert [(ids, count) for ids, count, _ in found] == [((1, 5, 6), 13), ((2, 5, 7), 13)]
        assert all(log_prob == 0.0 for *_, log_prob in found)
    silent = Windows(np.array([3, 5, 6, 4] * 53), 4)  # negative control: nothing to tell
    assert ngrams.skip_trigrams(silent, pair_counts(silent, 11), 5) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = SyntheticCorpus(
        source="synthetic", name="p", validation_share=0.2, seed=3, n_words=31, zipf=0.0, bigram_spread=1.0,
        two_back_spread=0.0, n_skip_trigrams=5, questions=False, n_answers=0, repeat_share=0.2, words_per_document=211,
        max_documents=101,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("tokens")
    tokenize_corpus(corpus, TokenizerConfig(d_vocab=283, train_bytes=1_000_003), 37, path)
    return path


def test_the_baselines_are_ordered_and_the_rows_are_those_asked_for(folder: Path) -> None:
    summary, rows, counts = corpus_statistics(folder, "p", 37, HOW)
    assert isinstance(summary, CorpusSummary)
    assert summary.bigram_loss_nats < summary.unigram_loss_nats < math.log(283)
    assert summary.source_documents == 101
    assert summary.train_documents + summary.tuning_documents + summary.verdict_documents == 101
    assert 0 < summary.repeated_share < 1
    assert 0 < summary.repeated_pairs < summary.repeat_reliability < 1
    led, _, _ = corpus_statistics(folder, "p", 37, HOW, repeat_weight=5.0)
    assert 0.003 < summary.induction_saving_nats < led.induction_saving_nats / 2
    assert {kind: sum(r.kind == kind for r in rows) for kind in ("unigram", "bigram", "skip_trigram")} == {
        "unigram": 7, "bigram": 7, "skip_trigram": 7
    }  # fmt: skip
    words = vocabulary(load_tokenizer(folder / "tokenizer.json"))
    for row in rows:
        assert isinstance(row, NGramRow)
        assert row.tokens == "\u241f".join(words[int(i)] for i in row.ids.split())
    first = next(r for r in rows if r.kind == "bigram")
    a, b = map(int, first.ids.split())
    assert first.count == counts.bigram_counts[a, b]
    assert first.log_prob_nats == pytest.approx(math.log(first.count / counts.bigram_counts[a].sum()), rel=1e-12)


def test_large_vocabularies_give_the_same_through_sparse_tables(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, rows, counts = corpus_statistics(folder, "p", 37, HOW)
    monkeypatch.setattr(statistics, "DENSE_VOCAB", 1)
    sparse_summary, sparse_rows, sparse_counts = corpus_statistics(folder, "p", 37, HOW)
    assert sparse.issparse(sparse_counts.bigram_counts)
    assert sparse_rows == rows
    assert sparse_summary.bigram_smoothing == summary.bigram_smoothing
    assert sparse_summary.bigram_loss_nats == pytest.approx(summary.bigram_loss_nats, rel=1e-12)
    for name, one in (("dense", counts), ("sparse", sparse_counts)):
        one.save(tmp_path / name)
        again = CorpusStatistics.load(tmp_path / name)
        found, given = (BigramRows(s.bigram_counts)[3:11].numpy() for s in (again, counts))
        np.testing.assert_array_equal(found, given)
        np.testing.assert_array_equal(again.unigram_counts, counts.unigram_counts)
        assert again.smoothing == counts.smoothing
    bytes_before = (tmp_path / "dense").read_bytes()
    counts.save(tmp_path / "dense")
    assert (tmp_path / "dense").read_bytes() == bytes_before


def test_statistics_that_are_something_else_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "counts.safetensors"
    counts = {"unigram_counts": np.full(8, 28), "dense": np.arange(8)[:, None].repeat(8, axis=1)}
    smoothing = {"smoothing": '["Dirichlet", 0.5]'}
    whole = save(counts, metadata=smoothing)
    file.write_bytes(whole)
    assert CorpusStatistics.load(file).smoothing == Smoothing("Dirichlet", 0.5)
    transposed = save(counts | {"dense": counts["dense"].T.copy()}, metadata=smoothing)  # [next, token]
    for other in (b"not a safetensors file", whole[: len(whole) // 2], save(counts), transposed):
        file.write_bytes(other)
        with pytest.raises(ValueError, match=r"expected corpus statistics, got something else .*; run the statistics"):
            CorpusStatistics.load(file)


def test_tokens_of_another_tokenizer_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    header = tmp_path / "verdict.json"
    header.write_text(header.read_text().replace('"tokenizer_hash": "', '"tokenizer_hash": "other'))
    with pytest.raises(ValueError, match=r"verdict\.bin: expected tokens of the tokenizer in its folder"):
        corpus_statistics(tmp_path, "p", 37, HOW)
