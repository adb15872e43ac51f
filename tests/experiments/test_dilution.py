"""Measured repetition equals its known value, mixtures keep their shares, and a known law is recovered."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.dilution import Mixture, prediction, tokenized
from experiments.repetition import induction_saving
from pathsum.config import TokenizerConfig
from pathsum.corpora.text_files import TextCorpus
from pathsum.data.windows import Windows

D_VOCAB, N_CTX = 64, 48


def text(seed: int, repeats: bool, count: int = 400) -> Windows:
    """Return windows of uniformly sampled words. With ``repeats``, a half of distinct words is repeated."""
    rng = np.random.default_rng(seed)
    if not repeats:
        return Windows(rng.integers(1, D_VOCAB, count * N_CTX).astype(np.uint16), N_CTX)
    halves = [rng.permutation(np.arange(1, D_VOCAB))[: N_CTX // 2] for _ in range(count)]
    return Windows(np.concatenate([np.tile(half, 2) for half in halves]).astype(np.uint16), N_CTX)


def test_nothing_is_saved_where_nothing_repeats() -> None:
    assert abs(induction_saving(text(0, False), text(1, False), D_VOCAB)) < 0.01


def test_what_a_copy_saves_is_its_words() -> None:
    """All words of the second copy but the first are predicted. Without repetition, each is one of the words seen so
    far."""
    share = (N_CTX / 2 - 1) / N_CTX
    found = induction_saving(text(0, True), text(1, True), D_VOCAB)
    assert share * math.log(N_CTX / 2) < found < share * math.log(N_CTX)  # log(D_VOCAB) beyond bigrams alone


def test_a_mixture_holds_its_share_and_is_the_same_again() -> None:
    rows = np.repeat(np.arange(1, 101), N_CTX).astype(np.uint16)  # window i holds i + 1 all through
    mixed = Mixture(Windows(rows, N_CTX), 256, Windows(rows + 100, N_CTX), 0.25)
    batches = torch.stack([mixed.batch(3, step, 8) for step in range(200)])
    assert batches.shape == (200, 8, N_CTX + 1)
    of = batches[..., -1]
    assert (of <= 100).float().mean() == pytest.approx(0.25, abs=0.04)
    assert len(of.unique()) > 190
    torch.testing.assert_close(mixed.batch(3, 7, 8), batches[7])
    assert mixed.batch(4, 7, 8).ne(batches[7]).any()


def test_it_is_asked_on_tokens_that_both_texts_hold() -> None:
    odd, even = np.tile([1, 3, 5, 6], 300), np.tile([2, 4, 5, 6], 300)
    mixed = Mixture(Windows(odd.astype(np.uint16), N_CTX), D_VOCAB, Windows(even.astype(np.uint16), N_CTX), 0.5)
    tokens, _ = mixed.repeated
    assert set(tokens[:, 1:].unique().tolist()) == {5, 6}


def test_a_text_without_documents_on_both_sides_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("a single document " * 100)
    corpus = TextCorpus(
        source="text", name="other", validation_share=0.5, paths=(str(tmp_path / "one.txt"),), separator="",
        max_documents=9,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"other \((train|tuning)\).*--separator"):
        tokenized({"other": corpus}, TokenizerConfig(d_vocab=300, train_bytes=1000), N_CTX, tmp_path)


def test_a_known_law_is_read_off_and_the_other_text_never_fitted() -> None:
    cells = [
        {"share": share, "saving": saving, "tokens": round(1e6 * saving**-1.5 * noise), "tokens_seen": 10**9}
        for share, saving in ((1, 0.8), (0.5, 0.4), (0.25, 0.2), (0.1, 0.1))
        for noise in (0.99, 1.01)
    ]
    law = prediction([*cells, {"share": 0, "saving": 0.05, "tokens": 7, "tokens_seen": 8}], at=0.05)
    assert law["exponent"] == pytest.approx(-1.5, abs=1e-4)
    assert law["tokens"] == pytest.approx(1e6 * 0.05**-1.5, rel=1e-3)
    assert law["tokens_low"] < law["tokens"] < law["tokens_high"] < 1.06 * law["tokens"]


def test_one_that_has_not_changed_counts_as_a_bound() -> None:
    cells = [
        {"share": 1, "saving": s, "tokens": 1e6 / s, "tokens_seen": 9e6} for s in (0.8, 0.78, 0.4, 0.39, 0.2, 0.21)
    ]
    slow = {"share": 1, "saving": 0.1, "tokens": None, "tokens_seen": 2e7}
    assert prediction([*cells, slow], at=0.1)["tokens"] > 1.2 * prediction(cells, at=0.1)["tokens"]
