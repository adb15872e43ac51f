"""Synthetic corpora: their text as tokens, their models, and the losses at the words that a rule determined."""

import math
from dataclasses import replace

import pytest
import torch

from pathsum.calibration import synthetic as room
from pathsum.calibration.synthetic import Curve
from pathsum.config import SyntheticModelConfig
from pathsum.text.synthetic import synthetic_corpus, synthetic_text
from pathsum.training.evaluate import token_losses
from tests import handmade
from tests.calibration.synthetic import HELD_OUT, HOW, N_CTX, N_WORDS, config, small_models, small_windows, transformer

RULES = {"repeat_share": 0.5, "n_skip_trigrams": 5, "questions": True}


def test_a_word_is_the_token_after_its_number_and_a_document_a_window() -> None:
    described = config(**RULES)
    text = small_windows(described, seed=3)
    corpus = described.corpus.model_copy(update={"seed": room.seed_from("small", 3, "text")})
    (documents,) = synthetic_text(corpus, synthetic_corpus(corpus)[1])
    windows = [[0, *(w + 1 for w in document)] for document in documents.words.tolist()]
    assert torch.cat([text.train, text.tuning, text.held_out]).tolist() == windows
    assert [len(text.tuning), len(text.held_out)] == [room.TUNING, HELD_OUT]
    assert torch.equal(text.copied, documents.copied[-HELD_OUT:])
    assert torch.equal(text.ruled, documents.ruled[-HELD_OUT:])
    assert text.truth == synthetic_corpus(corpus)[1]


def test_each_seed_has_rules_and_text_of_its_own_and_each_kind_too() -> None:
    """Equal seed and kind give equal corpora. Otherwise no table and no document is shared."""
    first, again = (small_windows(config(**RULES)) for _ in range(2))
    others = [small_windows(config(**RULES), seed=1), small_windows(config(**RULES), name="other")]
    assert first.truth == again.truth
    assert torch.equal(first.train, again.train)
    for other in others:
        assert first.truth.skip_sources != other.truth.skip_sources
        assert not {*first.truth.bigram[0]} & {*other.truth.bigram[0]}
        assert not {*map(tuple, first.train.tolist())} & {*map(tuple, other.train.tolist())}


def test_a_synthetic_corpus_without_documents_to_train_on_is_refused() -> None:
    with pytest.raises(ValueError, match=r"max_documents: expected more than the 131 that are held out, got 131"):
        small_windows(config(), held_out=131 - room.TUNING)


def test_a_rule_without_a_target_where_models_are_evaluated_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loss would be NaN, and its models would count as not learned."""
    rare = config(repeat_share=0.05)
    copied = small_windows(rare).copied
    first = int(copied.any(1).nonzero()[0])  # held-out document with a copy
    assert first > 0
    monkeypatch.setattr(room, "EVALUATED", first)
    with pytest.raises(ValueError, match=rf"models\.small: expected words .* in the first {first} held-out .* seed 0"):
        small_windows(rare)
    monkeypatch.setattr(room, "EVALUATED", first + 1)
    assert small_windows(rare).rules.keys() == {"copied"}


def test_losses_are_those_at_the_words_that_each_rule_made() -> None:
    """Compared with −log P(word | previous word), summed by hand, of a model that knows bigrams only."""
    text = small_windows(config(**RULES))
    table = handmade.normal(torch.Generator().manual_seed(0), N_WORDS + 1, N_WORDS + 1)
    curve = Curve([], [], {"copied": [], "ruled": []})
    room.evaluate(text, transformer(handmade.bigram(table), text.config.model), curve)
    log_p = table.log_softmax(0).tolist()
    for name, marked in (("copied", text.copied), ("ruled", text.ruled)):
        by_hand = [
            -log_p[document[at + 1]][document[at]]
            for document, marks in zip(text.held_out.tolist(), marked.tolist(), strict=True)
            for at in range(N_CTX)
            if marks[at]
        ]
        assert curve.losses[name] == pytest.approx([sum(by_hand) / len(by_hand)], rel=1e-5)  # float32


def test_only_rules_that_the_text_has_are_to_be_learnt() -> None:
    for rule, names in (
        ({}, set()),
        ({"repeat_share": 0.5}, {"copied"}),
        ({"questions": True}, {"ruled"}),
        ({"n_answers": 2}, {"ruled"}),
    ):
        (synthetic,) = small_models(config(**rule), (0,))
        assert set(synthetic.curve.losses) == names
        assert all(len(series) == 1 for series in synthetic.curve.losses.values())  # no tokens, one evaluation
        assert synthetic.learned == (not names)


def test_who_guesses_among_the_answers_of_lookups_has_not_learnt_them() -> None:
    (synthetic,) = small_models(config(n_answers=2), (0,))
    guess = -math.log(0.9 / 2)  # the rule is obeyed nine times in ten
    for last, learned in ((guess - 0.01, True), (guess + 0.01, False)):
        assert replace(synthetic, curve=Curve([], [], {"ruled": [9.0, last]})).learned == learned


TRAINED: SyntheticModelConfig = config(1, steps=40, n_words=11, bigram_spread=2.0, repeat_share=0.3)  # forty steps


def test_a_model_is_the_same_whichever_models_are_trained_in_one_batch_with_it() -> None:
    """Results therefore do not depend on how corpora are distributed over processes. Another seed gives another
    model."""
    (first, second), (alone,) = small_models(TRAINED, (0, 1)), small_models(TRAINED, (1,))
    torch.testing.assert_close(alone.trained.weights.W_U, second.trained.weights.W_U, rtol=0, atol=1e-4)
    assert (first.trained.weights.W_U - second.trained.weights.W_U).abs().max() > 0.1


def test_a_model_is_shown_what_was_held_out_and_has_a_loss_at_each_evaluation() -> None:
    """The model has learned something about the words: a uniform guess has a loss of log 12."""
    (synthetic,) = small_models(TRAINED, (0,))
    text, windows = synthetic.text, synthetic.text.held_out
    assert torch.equal(synthetic.data.held_out, windows)
    assert len(synthetic.data.windows) == HOW.windows
    assert synthetic.data.words == ["<bos>", *text.truth.words]
    tokens = torch.cat([text.train, text.tuning, windows])[:, 1:]
    assert synthetic.data.unigram.tolist() == [0, *((tokens == w).sum().item() for w in range(1, 12))]
    curve = synthetic.curve
    assert len(curve.losses["copied"]) == len(curve.matching) == len(curve.tokens_seen) > 2
    assert curve.tokens_seen[-1] == 37 * 5 * 40
    losses = token_losses(synthetic.trained.model, windows)
    assert losses.mean().item() < math.log(12) - 0.3
