"""Each detector finds the structure in models whose circuits are known, and finds nothing in models without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from pathsum.calibration.content import compares_with_previous
from pathsum.calibration.detectors import Unit, detectors
from pathsum.calibration.synthetic import Curve, SyntheticModel
from pathsum.calibration.two_layers import UNUSED_NATS, USED_NATS
from pathsum.calibration.zero_layers import SUCCESSORS
from pathsum.config import SyntheticModelConfig
from pathsum.core.weights import Weights
from pathsum.records.paths import ContentScoreRow
from tests import handmade
from tests.calibration.synthetic import (
    HOW,
    N_WORDS,
    config,
    smeared_induction,
    stand_in,
    untrained,
    without_qk,
)

D_VOCAB = N_WORDS + 1
HIT, MISS, FALSE_FIND, NOTHING = (True, True), (True, False), (False, True), (False, False)
Make = Callable[[SyntheticModelConfig], SyntheticModel]


@pytest.fixture(scope="module")
def synthetic() -> Make:
    """Return an untrained model for a configuration that says it is trained. Each corpus is generated once."""
    made = dict[str, SyntheticModel]()

    def make(config: SyntheticModelConfig) -> SyntheticModel:
        name = config.model_dump_json()
        if name not in made:
            made[name] = untrained(config)
        return made[name]

    return make


def units(name: str, *models: SyntheticModel) -> list[Unit]:
    return [unit for model in models for unit in detectors()[name](model)]


def induction_pair(previous: float = 30.0) -> tuple[Weights, tuple[float, float]]:
    """Return the hand-made induction pair, and the bias with which its first head attends to the previous token."""
    return handmade.induction_pair(D_VOCAB), (previous, 0.0)


# ---- bigrams --------------------------------------------------------------------------------------------------------


def bigram_model(synthetic: SyntheticModel, sign: float) -> SyntheticModel:
    """Return a model whose direct path is the bigram table of the text in logs, or its negative. BOS would follow every
    word."""
    table = torch.full((D_VOCAB, D_VOCAB), 99.0)
    table[1:, 1:] = sign * torch.tensor(synthetic.text.truth.bigram).log().mT
    return stand_in(synthetic, handmade.bigram(table))


def test_a_model_of_the_table_has_each_words_likeliest_successors(synthetic: Make) -> None:
    assert units("bigram", bigram_model(synthetic(config()), 1)) == [HIT] * (SUCCESSORS * N_WORDS)


def test_a_model_of_the_opposite_table_has_none_of_them(synthetic: Make) -> None:
    found = Counter(units("bigram", bigram_model(synthetic(config()), -1)))
    assert found == {MISS: SUCCESSORS * N_WORDS, FALSE_FIND: SUCCESSORS * N_WORDS}


def test_bigrams_are_looked_for_in_models_without_layers_only(synthetic: Make) -> None:
    assert units("bigram", synthetic(config(n_layers=1))) == []


# ---- skip-trigrams --------------------------------------------------------------------------------------------------

M = 5  # triples
SKIPS = config(n_layers=1, steps=1, n_skip_trigrams=M, max_documents=1009)


@pytest.fixture(scope="module")
def skips() -> SyntheticModel:
    """Return a corpus with skip-trigrams and enough held-out text that each occurs often."""
    return untrained(SKIPS, held_out=907)


def skip_head(synthetic: SyntheticModel, out_shift: int = 0, strength: float = 9.0) -> SyntheticModel:
    """Return a head with skip-trigrams: from each destination it prefers the source by 9 nats and raises an output.

    The output is that of the triple itself, or that of another triple. From all other tokens the head avoids sources.
    """
    truth, qk, ov = synthetic.text.truth, torch.zeros(D_VOCAB, D_VOCAB), torch.zeros(D_VOCAB, D_VOCAB)
    qk[:, [source + 1 for source in truth.skip_sources]] = -9
    outs = truth.skip_outs[out_shift:] + truth.skip_outs[:out_shift]
    for source, destination, out in zip(truth.skip_sources, truth.skip_destinations, outs, strict=True):
        qk[destination + 1, source + 1], ov[out + 1, source + 1] = 9, strength
    return stand_in(synthetic, handmade.skip_trigram_head(qk, ov))


BOTH = pytest.mark.parametrize("name", ["skip_trigram", "skip_trigram_model"])


@BOTH
def test_a_head_of_the_planted_skip_trigrams_has_them_all_and_no_others(skips: SyntheticModel, name: str) -> None:
    """The list of the atlas is as long as the number of triples. The second detector has no fixed length."""
    assert HOW.top_k == M
    assert units(name, skip_head(skips)) == [HIT] * M


@BOTH
def test_a_head_that_writes_nothing_or_the_wrong_outs_has_none_of_them(skips: SyntheticModel, name: str) -> None:
    assert units(name, skip_head(skips, strength=0.0)) == [MISS] * M
    assert units(name, skip_head(skips, out_shift=1)) == [MISS] * M


@BOTH
def test_a_triple_that_was_not_planted_is_a_false_find(skips: SyntheticModel, name: str) -> None:
    """The head is the same, but the ground truth lacks one of its triples."""
    model = skip_head(skips)
    fewer = {f: getattr(model.text.truth, f)[1:] for f in ("skip_sources", "skip_destinations", "skip_outs")}
    text = replace(model.text, truth=replace(model.text.truth, **fewer))
    assert Counter(units(name, replace(model, text=text))) == {HIT: M - 1, FALSE_FIND: 1}


def test_without_planted_triples_or_without_heads_there_is_nothing_to_say(synthetic: Make) -> None:
    for name in ("skip_trigram", "skip_trigram_model"):
        assert units(name, synthetic(config(n_layers=1)), synthetic(config(n_layers=0, n_skip_trigrams=M))) == []


# ---- previous-token heads -------------------------------------------------------------------------------------------


TOLD = config(n_layers=1, steps=1, two_back_spread=1.0)


def one_layer(previous: float) -> tuple[Weights, tuple[float, ...]]:
    """Return a model of the first head of the induction pair alone."""
    weights = handmade.induction_pair(D_VOCAB)
    return replace(weights, layers=weights.layers[:1]), (previous,)


def test_a_head_that_looks_at_the_token_before_is_found_and_an_even_one_missed(synthetic: Make) -> None:
    assert units("previous_token", stand_in(synthetic(TOLD), *one_layer(30.0))) == [HIT]
    assert units("previous_token", stand_in(synthetic(TOLD), *one_layer(0.0))) == [MISS]


@pytest.mark.parametrize("without", [{"two_back_spread": 0.0, "steps": 1}, {"two_back_spread": 1.0, "steps": 0}])
def test_where_the_word_two_back_tells_nothing_or_nothing_was_told_none_is_planted(
    synthetic: Make, without: dict[str, float]
) -> None:
    model = stand_in(synthetic(config(n_layers=1, **without)), *one_layer(30.0))  # type: ignore[arg-type]
    assert units("previous_token", model) == [FALSE_FIND]


def test_of_two_layers_it_is_not_known_which_looks_at_the_token_before(synthetic: Make) -> None:
    told = synthetic(config(n_layers=2, steps=1, two_back_spread=1.0))
    assert units("previous_token", stand_in(told, *induction_pair())) == []


# ---- induction and copying ------------------------------------------------------------------------------------------

COPIES = config(n_layers=2, steps=1, repeat_share=0.5)


def test_the_later_head_of_an_induction_pair_is_found(synthetic: Make) -> None:
    assert units("induction", stand_in(synthetic(COPIES), *induction_pair())) == [NOTHING, HIT]


def test_a_pair_without_its_previous_token_head_or_its_matching_is_missed(synthetic: Make) -> None:
    weights, bias = induction_pair()
    assert units("induction", stand_in(synthetic(COPIES), weights, (0.0, 0.0))) == [NOTHING, MISS]
    assert units("induction", stand_in(synthetic(COPIES), without_qk(weights, 1), bias)) == [NOTHING, MISS]


def test_where_nothing_is_copied_an_induction_pair_is_a_false_find(synthetic: Make) -> None:
    assert units("induction", stand_in(synthetic(config(n_layers=2, steps=1)), *induction_pair())) == [
        NOTHING,
        FALSE_FIND,
    ]


def test_in_one_layer_induction_is_planted_where_keys_know_what_stood_before_them(synthetic: Make) -> None:
    smeared = synthetic(config(n_layers=1, steps=1, smeared_keys=True, repeat_share=0.5))
    model = stand_in(smeared, smeared_induction(D_VOCAB), smear=-20.0)
    assert units("induction", model) == [HIT]
    assert units("induction", stand_in(smeared, smeared_induction(D_VOCAB), smear=20.0)) == [MISS]  # looks at itself
    plain = synthetic(config(n_layers=1, steps=1, repeat_share=0.5))
    assert units("induction", replace(model, text=plain.text)) == [FALSE_FIND]


def test_a_head_that_copies_is_found_and_one_that_deletes_is_not(synthetic: Make) -> None:
    smeared = synthetic(config(n_layers=1, steps=1, smeared_keys=True, repeat_share=0.5))
    copying, deleting = handmade.copying_head(D_VOCAB), handmade.deleting_head(D_VOCAB)
    silent = handmade.copying_head(D_VOCAB, strength=0.0)
    models = [stand_in(smeared, weights, smear=0.0) for weights in (copying, deleting, silent)]
    assert units("copying", *models) == [HIT, MISS, MISS]


def test_where_nothing_is_to_be_copied_a_head_that_copies_is_a_false_find(synthetic: Make) -> None:
    plain = synthetic(config(n_layers=1, steps=1))
    models = [stand_in(plain, w) for w in (handmade.copying_head(D_VOCAB), handmade.deleting_head(D_VOCAB))]
    assert units("copying", *models) == [FALSE_FIND, NOTHING]


def test_what_cannot_be_known_of_copying_is_left_out(synthetic: Make) -> None:
    """First-layer heads may copy for second-layer heads, and heads that answer questions or lookups may copy too."""
    assert units("copying", stand_in(synthetic(COPIES), *induction_pair())) == [HIT]
    for answering in (ANSWERS, LOOKUPS):
        assert units("copying", stand_in(synthetic(answering), handmade.virtual_head(D_VOCAB))) == []


def test_of_two_heads_in_a_layer_that_must_match_one_is_enough(synthetic: Make) -> None:
    """There is one positive unit for the second layer, and one negative unit for each head of the first layer."""
    weights, bias = induction_pair()
    (early,), (late,) = weights.layers
    even, silent = replace(late, W_Q=0 * late.W_Q), replace(early, W_O=0 * early.W_O)
    two = replace(weights, layers=((early, silent), (late, even)))
    assert units("induction", stand_in(synthetic(COPIES), two, bias)) == [NOTHING, NOTHING, HIT]


# ---- composition ----------------------------------------------------------------------------------------------------

ANSWERS = config(n_layers=2, steps=1, questions=True)
LOOKUPS = config(n_layers=2, steps=1, n_answers=2)
KEYS = handmade.induction_pair(D_VOCAB)
QUERIES = replace(KEYS, layers=(KEYS.layers[0], tuple(replace(h, W_Q=h.W_K, W_K=h.W_Q) for h in KEYS.layers[1])))
LOOKS_BACK = (30.0, 0.0)  # heads that attend alike everywhere write nothing that varies
COMPOSING = [
    ("composition_q", LOOKUPS, QUERIES),
    ("composition_k", COPIES, KEYS),
    ("composition_v", ANSWERS, handmade.virtual_head(D_VOCAB)),
]


@pytest.mark.parametrize(("name", "where", "weights"), COMPOSING)
def test_an_edge_is_held_against_what_depends_on_it_and_left_out_where_that_is_in_doubt(
    synthetic: Make, name: str, where: SyntheticModelConfig, weights: Weights
) -> None:
    """This does not depend on the model's other edges. Edges into an unused head give no units."""
    model, kind = stand_in(synthetic(where), weights, LOOKS_BACK), name[-1].upper()
    for nats, expected in ((USED_NATS, [HIT]), (0.3, []), (UNUSED_NATS, [FALSE_FIND]), (-1.0, [FALSE_FIND])):
        edges = {(reader, 0, 0): nats if reader == kind else 9.0 for reader in "QKV"}
        assert units(name, replace(model, edges=edges)) == expected
    assert units(name, replace(model, edges={})) == []
    assert units(name, replace(model, late={0: 0.9 * USED_NATS})) == []


@pytest.mark.parametrize(("name", "where", "weights"), COMPOSING)
def test_a_later_head_that_reads_nothing_of_the_earlier_one_is_missed(
    synthetic: Make, name: str, where: SyntheticModelConfig, weights: Weights
) -> None:
    (early,), (late,) = weights.layers
    deaf = replace(weights, layers=((replace(early, W_O=early.W_O.roll(D_VOCAB, 0)),), (late,)))  # into another room
    assert units(name, stand_in(synthetic(where), deaf, LOOKS_BACK)) == [MISS]


@pytest.mark.parametrize(("name", "where", "weights"), COMPOSING)
def test_negatives_are_the_other_kinds_of_edges_of_the_same_model(
    synthetic: Make, name: str, where: SyntheticModelConfig, weights: Weights
) -> None:
    """The hand-made weights have one edge of three. If only the two others are used, all three judgments are wrong."""
    kind, model = name[-1].upper(), stand_in(synthetic(where), weights, LOOKS_BACK)
    right = {(reader, 0, 0): 9.0 if reader == kind else 0.0 for reader in "QKV"}
    wrong = {edge: 9.0 - nats for edge, nats in right.items()}
    assert Counter(units("composition", replace(model, edges=right))) == {HIT: 1, NOTHING: 2}
    assert Counter(units("composition", replace(model, edges=wrong))) == {FALSE_FIND: 1, MISS: 2}
    for other in "QKV".replace(kind, ""):
        assert units(f"composition_{other.lower()}", replace(model, edges=right)) == [NOTHING]


def test_heads_without_structure_do_not_compose(synthetic: Make) -> None:
    """Negative control at a false-discovery rate of 0.1, so one model in ten may fail.

    Under a binomial distribution, more than 5 of 20 models fail with a probability of 1 %.
    """
    random = [handmade.random_weights(seed, n_layers=2, n_heads=1, d_vocab=D_VOCAB) for seed in range(20)]
    found = [units("composition", stand_in(synthetic(COPIES), weights, LOOKS_BACK)) for weights in random]
    assert sum(units != [MISS] * 3 for units in found) <= 5


@pytest.mark.parametrize(
    ("weights", "where", "expected"),
    [(KEYS, COPIES, [HIT]), (QUERIES, COPIES, [MISS]), (KEYS, LOOKUPS, [FALSE_FIND]), (QUERIES, ANSWERS, [NOTHING])],
)
def test_keys_are_held_against_the_text_that_must_be_matched_by_the_token_before(
    synthetic: Make, weights: Weights, where: SyntheticModelConfig, expected: list[Unit]
) -> None:
    assert units("keys_of_previous_token", stand_in(synthetic(where), weights, LOOKS_BACK)) == expected


def test_half_of_a_preference_counts_and_no_part_of_none() -> None:
    def row(query: str, key: str, nats: float) -> ContentScoreRow:
        return ContentScoreRow(1, 0, query, key, nats, 0.1, 0.0, 0.0, None, None)

    for here, elsewhere, found in (
        (2.0, 1.9, True),
        (2.0, 2.1, False),
        (0.9, 0.0, False),
        (2.0, -0.9, True),
        (2.0, -1.1, False),
    ):
        assert compares_with_previous([row("0", "1", here), row("0", "0", elsewhere)]) == found


# ---- phase change ---------------------------------------------------------------------------------------------------

TOKENS = [0, 10, 20, 30, 40, 50]
FORMS = [0.0, 0.0, 0.0, 0.6, 0.6, 0.6]  # half-way between 20 and 30
FALLS = [5.0, 5.0, 5.0, 1.0, 1.0, 1.0]


def changing(synthetic: SyntheticModel, matching: list[float], copied: list[float] | None) -> SyntheticModel:
    return replace(synthetic, curve=Curve(TOKENS, matching, {} if copied is None else {"copied": copied}))


def test_a_loss_that_falls_as_prefix_matching_forms_is_a_hit(synthetic: Make) -> None:
    assert units("phase_change", changing(synthetic(COPIES), FORMS, FALLS)) == [HIT]
    next_to = [5.0, 5.0, 5.0, 5.0, 1.0, 1.0]  # between 30 and 40: no evaluation lies between
    assert units("phase_change", changing(synthetic(COPIES), FORMS, next_to)) == [HIT]


@pytest.mark.parametrize("copied", [[5.0, 5.0, 5.0, 5.0, 5.0, 1.0], [5.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
def test_a_change_at_another_time_is_missed_and_a_false_find(synthetic: Make, copied: list[float]) -> None:
    """The onset is after the fall of the loss, and before it."""
    assert units("phase_change", changing(synthetic(COPIES), FORMS, copied)) == [MISS, FALSE_FIND]


def test_a_loss_that_falls_without_prefix_matching_is_missed(synthetic: Make) -> None:
    assert units("phase_change", changing(synthetic(COPIES), [0.0] * 6, FALLS)) == [MISS, NOTHING]


@pytest.mark.parametrize("copied", [None, [5.0] * 6, [5.0, 5.0, 5.0, 4.1, 4.1, 4.1]])
def test_without_a_fall_of_a_nat_no_change_is_planted(synthetic: Make, copied: list[float] | None) -> None:
    assert units("phase_change", changing(synthetic(COPIES), FORMS, copied)) == [FALSE_FIND]
    assert units("phase_change", changing(synthetic(COPIES), [0.0] * 6, copied)) == [NOTHING]


def test_models_that_cannot_change_are_left_out(synthetic: Make) -> None:
    assert units("phase_change", synthetic(COPIES)) == []  # one evaluation
    assert units("phase_change", synthetic(config())) == []  # no heads


# ---- nothing at all -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["previous_token", "induction", "copying"])
def test_in_untrained_models_nothing_is_found(synthetic: Make, name: str) -> None:
    """For one head in one layer and two heads in two layers, on a corpus without rules."""
    assert units(name, *[synthetic(config(n_layers=n)) for n in (0, 1, 2)]) == [NOTHING] * 3
