"""Planted worlds: their text as tokens, their models from the run store, their losses where a rule made the word."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pathsum.calibration import world as room
from pathsum.calibration.world import World, grow
from pathsum.config import WorldConfig
from pathsum.data.planted import planted, planted_text
from pathsum.extraction.evidence import Evidence
from pathsum.model.checkpoint import save_checkpoint
from tests import handmade
from tests.calibration.grown import HELD_OUT, HOW, N_CTX, N_WORDS, TUNING, config, small_world, transformer

RULES = {"repeat_share": 0.5, "n_skip_trigrams": 5, "questions": True}


def text_of(config: WorldConfig) -> tuple[list[list[int]], list[list[bool]], list[list[bool]]]:
    """Words, and whether they are copied and ruled, of all documents."""
    (text,) = planted_text(config.corpus, planted(config.corpus)[1])
    return text.words.tolist(), text.copied.tolist(), text.ruled.tolist()


def test_a_word_is_the_token_after_its_number_and_a_document_a_window() -> None:
    described = config(**RULES)
    world = small_world(described)
    words, copied, ruled = text_of(described)
    windows = [[0, *(w + 1 for w in document)] for document in words]
    for part, rows in (
        (world.train, windows[: -HELD_OUT - TUNING]),
        (world.tuning, windows[-HELD_OUT - TUNING : -HELD_OUT]),
        (world.held_out, windows[-HELD_OUT:]),
    ):
        assert part.batch(torch.arange(len(part))).tolist() == rows
    assert (world.copied.tolist(), world.ruled.tolist()) == (copied[-HELD_OUT:], ruled[-HELD_OUT:])
    assert world.truth == planted(described.corpus)[1]


def test_without_documents_to_train_on_a_world_is_refused() -> None:
    with pytest.raises(ValueError, match=rf"expected at least n_ctx \+ 1 = {N_CTX + 1} tokens, got 0"):
        small_world(config(), held_out=131)


def test_losses_are_those_at_the_words_that_each_rule_made(tmp_path: Path) -> None:
    """Against −log P(word | word before), added up word by word, of a model that knows bigrams only."""
    described = config(**RULES)
    world = small_world(described)
    words, *marks = text_of(described)
    table = handmade.normal(torch.Generator().manual_seed(0), N_WORDS + 1, N_WORDS + 1)
    model = transformer(handmade.bigram(table), described.model, (), None)
    save_checkpoint(tmp_path / "0.safetensors", model, "words")
    found = room._losses(world, [tmp_path / "0.safetensors"] * 2, evidence(world))
    log_p = table.log_softmax(0).tolist()
    for name, marked in zip(("copied", "ruled"), marks, strict=True):
        by_hand = [
            -log_p[word + 1][words[d][at - 1] + 1 if at else 0]
            for d in range(len(words) - HELD_OUT, len(words))
            for at, word in enumerate(words[d])
            if marked[d][at]
        ]
        assert found[name] == pytest.approx([sum(by_hand) / len(by_hand)] * 2, rel=1e-5)  # float32
    assert set(found) == {"copied", "ruled"}


def evidence(world: World) -> Evidence:
    return Evidence(
        held_out=world.held_out.batch(torch.arange(len(world.held_out))),
        documents=torch.arange(len(world.held_out)),
        windows=world.held_out.batch(torch.arange(3)),
        tuning=world.tuning.batch(torch.arange(3)),
        unigram=torch.ones(N_WORDS + 1),
        bigram_counts=torch.zeros(N_WORDS + 1, N_WORDS + 1),
        words=["<bos>", *world.truth.words],
        tokenizer_hash="words",
    )


def test_only_rules_that_the_text_has_are_to_be_learnt(tmp_path: Path) -> None:
    for rule, names in (
        ({}, set()),
        ({"repeat_share": 0.5}, {"copied"}),
        ({"questions": True}, {"ruled"}),
        ({"n_answers": 2}, {"ruled"}),
    ):
        grown = grow(small_world(config(**rule)), 0, HOW, tmp_path)
        assert set(grown.losses) == names
        assert all(len(series) == 1 for series in grown.losses.values())  # no tokens, one evaluation
        assert grown.learnt == (not names)


def test_who_guesses_among_the_answers_of_lookups_has_not_learnt_them(tmp_path: Path) -> None:
    grown = grow(small_world(config(n_answers=2)), 0, HOW, tmp_path)
    guess = -math.log(0.9 / 2)  # the rule is obeyed nine times in ten
    for last, learnt in ((guess - 0.01, True), (guess + 0.01, False)):
        assert replace(grown, losses={"ruled": [9.0, last]}).learnt == learnt


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


TRAINED = config(tokens=37 * 5 * 40, n_words=11, bigram_spread=2.0, repeat_share=0.3)  # forty steps, no layers


def test_a_model_grows_once_and_comes_from_the_run_store_after(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = grow(small_world(TRAINED), 0, HOW, runs)

    def forbidden(*args: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(room, "train", forbidden)
    again = grow(small_world(TRAINED), 0, HOW, runs)
    assert again.losses == first.losses
    assert again.subject.log == first.subject.log
    torch.testing.assert_close(again.subject.weights.W_E, first.subject.weights.W_E, rtol=0, atol=0)
    for seed, described in ((1, TRAINED), (0, config(tokens=37 * 5 * 40, n_words=11, seed=4))):
        with pytest.raises(AssertionError, match="trained again"):
            grow(small_world(described), seed, HOW, runs)


def test_the_same_seed_grows_the_same_model_elsewhere_and_another_seed_another(runs: Path, tmp_path: Path) -> None:
    first, again, other = (
        grow(small_world(TRAINED), seed, HOW, folder) for seed, folder in ((0, runs), (0, tmp_path), (1, tmp_path))
    )
    assert first.losses == again.losses != other.losses
    assert torch.equal(first.subject.weights.W_U, again.subject.weights.W_U)
    assert not torch.equal(first.subject.weights.W_U, other.subject.weights.W_U)


def test_a_model_is_shown_what_was_held_out_and_has_a_loss_at_each_evaluation(runs: Path) -> None:
    """And it has learnt something of the words: a flat guess costs log 12."""
    grown = grow(small_world(TRAINED), 0, HOW, runs)
    assert grown.seen.held_out.tolist() == grown.world.held_out.batch(torch.arange(HELD_OUT)).tolist()
    assert len(grown.seen.windows) == HOW.windows
    assert grown.seen.words == ["<bos>", *grown.world.truth.words]
    assert grown.seen.unigram.tolist() == [0, *((grown.world.tokens == w).sum().item() for w in range(1, 12))]
    assert len(grown.losses["copied"]) == len(grown.subject.log) > 2
    assert grown.subject.log[-1].val_loss_nats < math.log(12) - 0.3


def test_a_worlds_windows_do_not_look_into_its_tensors() -> None:
    """Those move to shared memory when a world is sent to another process: a view of them ended in a segmentation
    fault."""
    world = small_world(config(max_documents=131))
    assert not any(np.shares_memory(part._rows, world.tokens.numpy()) for part in (world.train, world.held_out))
