"""Each detector finds the structure in models whose circuits are known, and finds nothing in models without it."""

import functools
from collections import Counter
from dataclasses import replace

import pytest
import torch

from pathsum.calibration.detectors import (
    DETECTORS,
    SUCCESSORS,
    UNUSED_NATS,
    USED_NATS,
    Unit,
    compares_with_previous,
)
from pathsum.calibration.synthetic import Curve, SyntheticModel
from pathsum.config import SyntheticModelConfig
from pathsum.core.weights import Weights
from pathsum.records.paths import ContentScoreRow
from tests import handmade
from tests.calibration.synthetic import HOW, N_WORDS, config, smeared_induction, stand_in, untrained, without_qk

D_VOCAB = N_WORDS + 1
HIT, MISS, FALSE_FIND, NOTHING = (True, True), (True, False), (False, True), (False, False)


def synthetic(config: SyntheticModelConfig) -> SyntheticModel:
    """Return an untrained model for a configuration that says it is trained. Each corpus is generated once."""
    return _made(config.model_dump_json())


@functools.cache
def _made(config: str) -> SyntheticModel:
    return untrained(SyntheticModelConfig.model_validate_json(config))


def units(name: str, *models: SyntheticModel) -> list[Unit]:
    return [unit for model in models for unit in DETECTORS[name](model)]


# ---- heads ----------------------------------------------------------------------------------------------------------

COPIES = config(n_layers=2, steps=1, repeat_share=0.5)
ANSWERS = config(n_layers=2, steps=1, questions=True)
LOOKUPS = config(n_layers=2, steps=1, n_answers=2)
TOLD = config(n_layers=1, steps=1, two_back_spread=1.0)  # the word two back tells of the next
SMEARED = config(n_layers=1, steps=1, smeared_keys=True, repeat_share=0.5)
PLAIN = config(n_layers=1, steps=1)

KEYS = handmade.induction_pair(D_VOCAB)  # with a bias, its first head attends to the previous token
(EARLY,), (LATE,) = KEYS.layers
PREVIOUS = replace(KEYS, layers=((EARLY,),))
QUERIES = replace(KEYS, layers=((EARLY,), (replace(LATE, W_Q=LATE.W_K, W_K=LATE.W_Q),)))
TWO_HEADS = replace(KEYS, layers=((EARLY, replace(EARLY, W_O=0 * EARLY.W_O)), (LATE, replace(LATE, W_Q=0 * LATE.W_Q))))
VALUES, SMEAR = handmade.virtual_head(D_VOCAB), smeared_induction(D_VOCAB)
COPYING, DELETING = handmade.copying_head(D_VOCAB), handmade.deleting_head(D_VOCAB)
BACK = (30.0, 0.0)  # heads that attend alike everywhere write nothing that varies


@pytest.mark.parametrize(
    ("name", "where", "weights", "bias", "smear", "expected"),
    [
        ("previous_token", TOLD, PREVIOUS, (30.0,), None, [HIT]),
        ("previous_token", TOLD, PREVIOUS, (0.0,), None, [MISS]),
        ("previous_token", PLAIN, PREVIOUS, (30.0,), None, [FALSE_FIND]),
        ("previous_token", config(n_layers=1, two_back_spread=1.0), PREVIOUS, (30.0,), None, [FALSE_FIND]),  # untrained
        ("previous_token", config(n_layers=2, steps=1, two_back_spread=1.0), KEYS, BACK, None, []),  # in which layer?
        ("induction", COPIES, KEYS, BACK, None, [NOTHING, HIT]),
        ("induction", COPIES, KEYS, (0.0, 0.0), None, [NOTHING, MISS]),
        ("induction", COPIES, without_qk(KEYS, 1), BACK, None, [NOTHING, MISS]),
        ("induction", COPIES, TWO_HEADS, BACK, None, [NOTHING, NOTHING, HIT]),  # of a layer that must match, one head
        ("induction", config(n_layers=2, steps=1), KEYS, BACK, None, [NOTHING, FALSE_FIND]),
        ("induction", SMEARED, SMEAR, (), -20.0, [HIT]),
        ("induction", SMEARED, SMEAR, (), 20.0, [MISS]),  # keys of the token itself
        ("induction", config(n_layers=1, steps=1, repeat_share=0.5), SMEAR, (), -20.0, [FALSE_FIND]),
        ("copying", SMEARED, COPYING, (), 0.0, [HIT]),
        ("copying", SMEARED, DELETING, (), 0.0, [MISS]),
        ("copying", SMEARED, handmade.copying_head(D_VOCAB, strength=0.0), (), 0.0, [MISS]),
        ("copying", PLAIN, COPYING, (), None, [FALSE_FIND]),
        ("copying", PLAIN, DELETING, (), None, [NOTHING]),
        ("copying", COPIES, KEYS, BACK, None, [HIT]),  # heads of the first layer may copy for the second
        ("copying", ANSWERS, VALUES, (), None, []),  # heads that answer may copy too
        ("copying", LOOKUPS, VALUES, (), None, []),
        ("keys_of_previous_token", COPIES, KEYS, BACK, None, [HIT]),
        ("keys_of_previous_token", COPIES, QUERIES, BACK, None, [MISS]),
        ("keys_of_previous_token", LOOKUPS, KEYS, BACK, None, [FALSE_FIND]),
        ("keys_of_previous_token", ANSWERS, QUERIES, BACK, None, [NOTHING]),
    ],
)
def test_a_head_is_held_against_what_the_text_must_have_made(
    name: str,
    where: SyntheticModelConfig,
    weights: Weights,
    bias: tuple[float, ...],
    smear: float | None,
    expected: list[Unit],
) -> None:
    assert units(name, stand_in(synthetic(where), weights, bias, smear)) == expected


@pytest.mark.parametrize("name", ["previous_token", "induction", "copying"])
def test_in_untrained_models_nothing_is_found(name: str) -> None:
    """For one head in one layer and two heads in two layers, on a corpus without rules."""
    assert units(name, *[synthetic(config(n_layers=n)) for n in (0, 1, 2)]) == [NOTHING] * 3


@pytest.mark.parametrize(
    ("here", "elsewhere", "found"),
    [(2.0, 1.9, True), (2.0, 2.1, False), (0.9, 0.0, False), (2.0, -0.9, True), (2.0, -1.1, False)],
)
def test_half_of_a_preference_counts_and_no_part_of_none(here: float, elsewhere: float, found: bool) -> None:
    nats = {"1": here, "0": elsewhere}
    rows = [ContentScoreRow(1, 0, "0", key, nats[key], 0.1, 0.0, 0.0, None, None) for key in nats]
    assert compares_with_previous(rows) == found


# ---- bigrams --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sign", "expected"), [(1, {HIT: 1}), (-1, {MISS: 1, FALSE_FIND: 1})])
def test_a_model_of_the_table_has_each_words_likeliest_successors_and_its_opposite_none(
    sign: int, expected: dict[Unit, int]
) -> None:
    """The direct path is the bigram table of the text in logs, or its negative. BOS would follow every word."""
    plain = synthetic(config())
    table = torch.full((D_VOCAB, D_VOCAB), 99.0)
    table[1:, 1:] = sign * torch.tensor(plain.text.truth.bigram).log().mT
    found = Counter(units("bigram", stand_in(plain, handmade.bigram(table))))
    assert found == {unit: n * SUCCESSORS * N_WORDS for unit, n in expected.items()}
    assert units("bigram", synthetic(PLAIN)) == []  # models without layers only


# ---- skip-trigrams --------------------------------------------------------------------------------------------------

M = 5  # triples


@pytest.fixture(scope="module")
def skips() -> SyntheticModel:
    """Return a corpus with skip-trigrams and enough held-out text that each occurs often."""
    return untrained(config(n_layers=1, steps=1, n_skip_trigrams=M, max_documents=1009), held_out=907)


def skip_head(synthetic: SyntheticModel, out_shift: int = 0, strength: float = 9.0) -> SyntheticModel:
    """Return a head that from each destination prefers the source by 9 nats and raises the output of the triple, or of
    another triple. From all other tokens it avoids sources."""
    truth, qk, ov = synthetic.text.truth, torch.zeros(D_VOCAB, D_VOCAB), torch.zeros(D_VOCAB, D_VOCAB)
    qk[:, [source + 1 for source in truth.skip_sources]] = -9
    outs = truth.skip_outs[out_shift:] + truth.skip_outs[:out_shift]
    for source, destination, out in zip(truth.skip_sources, truth.skip_destinations, outs, strict=True):
        qk[destination + 1, source + 1], ov[out + 1, source + 1] = 9, strength
    return stand_in(synthetic, handmade.skip_trigram_head(qk, ov))


@pytest.mark.parametrize("name", ["skip_trigram", "skip_trigram_model"])
def test_a_head_of_the_planted_skip_trigrams_has_them_all_and_no_others(skips: SyntheticModel, name: str) -> None:
    """The list of the atlas is as long as the number of triples. The second detector has no fixed length."""
    assert HOW.top_k == M
    model = skip_head(skips)
    assert units(name, model) == [HIT] * M
    assert units(name, skip_head(skips, strength=0.0)) == [MISS] * M
    assert units(name, skip_head(skips, out_shift=1)) == [MISS] * M
    # the same head, but the ground truth lacks one of its triples
    fewer = {f: getattr(model.text.truth, f)[1:] for f in ("skip_sources", "skip_destinations", "skip_outs")}
    text = replace(model.text, truth=replace(model.text.truth, **fewer))
    assert Counter(units(name, replace(model, text=text))) == {HIT: M - 1, FALSE_FIND: 1}
    assert units(name, synthetic(config(n_layers=1)), synthetic(config(n_layers=0, n_skip_trigrams=M))) == []


# ---- composition ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "where", "weights"), [("Q", LOOKUPS, QUERIES), ("K", COPIES, KEYS), ("V", ANSWERS, VALUES)]
)
def test_an_edge_is_held_against_what_depends_on_it_and_left_out_where_that_is_in_doubt(
    kind: str, where: SyntheticModelConfig, weights: Weights
) -> None:
    """The hand-made weights have one edge of three. If only the two others are used, all three judgments are wrong."""
    model, name = stand_in(synthetic(where), weights, BACK), f"composition_{kind.lower()}"
    for nats, expected in ((USED_NATS, [HIT]), (0.3, []), (UNUSED_NATS, [FALSE_FIND]), (-1.0, [FALSE_FIND])):
        edges = {(reader, 0, 0): nats if reader == kind else 9.0 for reader in "QKV"}
        assert units(name, replace(model, edges=edges)) == expected
    assert units(name, replace(model, edges={})) == []
    assert units(name, replace(model, late={0: 0.9 * USED_NATS})) == []  # edges into an unused head
    right = {(reader, 0, 0): 9.0 if reader == kind else 0.0 for reader in "QKV"}
    wrong = {edge: 9.0 - nats for edge, nats in right.items()}
    assert Counter(units("composition", replace(model, edges=right))) == {HIT: 1, NOTHING: 2}
    assert Counter(units("composition", replace(model, edges=wrong))) == {FALSE_FIND: 1, MISS: 2}
    for other in "QKV".replace(kind, ""):
        assert units(f"composition_{other.lower()}", replace(model, edges=right)) == [NOTHING]
    (early,), late = weights.layers
    deaf = replace(weights, layers=((replace(early, W_O=early.W_O.roll(D_VOCAB, 0)),), late))  # writes elsewhere
    assert units(name, stand_in(synthetic(where), deaf, BACK)) == [MISS]


def test_heads_without_structure_do_not_compose() -> None:
    """Negative control at a false-discovery rate of 0.1, so one model in ten may fail.

    Under a binomial distribution, more than 5 of 20 models fail with a probability of 1 %.
    """
    random = [handmade.random_weights(seed, n_layers=2, n_heads=1, d_vocab=D_VOCAB) for seed in range(20)]
    found = [units("composition", stand_in(synthetic(COPIES), weights, BACK)) for weights in random]
    assert sum(units != [MISS] * 3 for units in found) <= 5


# ---- phase change ---------------------------------------------------------------------------------------------------

FORMS = [0.0, 0.0, 0.0, 0.6, 0.6, 0.6]  # half-way between 20 and 30
FALLS = [5.0, 5.0, 5.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("matching", "copied", "expected"),
    [
        (FORMS, FALLS, [HIT]),
        (FORMS, [5.0, 5.0, 5.0, 5.0, 1.0, 1.0], [HIT]),  # between 30 and 40: no evaluation lies between
        (FORMS, [5.0, 5.0, 5.0, 5.0, 5.0, 1.0], [MISS, FALSE_FIND]),
        (FORMS, [5.0, 1.0, 1.0, 1.0, 1.0, 1.0], [MISS, FALSE_FIND]),
        ([0.0] * 6, FALLS, [MISS, NOTHING]),
        *((FORMS, still, [FALSE_FIND]) for still in (None, [5.0] * 6, [5.0, 5.0, 5.0, 4.1, 4.1, 4.1])),
        *(([0.0] * 6, still, [NOTHING]) for still in (None, [5.0] * 6, [5.0, 5.0, 5.0, 4.1, 4.1, 4.1])),
    ],
)
def test_the_onset_of_prefix_matching_is_held_against_the_fall_of_the_loss_on_copies(
    matching: list[float], copied: list[float] | None, expected: list[Unit]
) -> None:
    curve = Curve([0, 10, 20, 30, 40, 50], matching, {} if copied is None else {"copied": copied})
    assert units("phase_change", replace(synthetic(COPIES), curve=curve)) == expected


def test_models_that_cannot_change_are_left_out() -> None:
    assert units("phase_change", synthetic(COPIES)) == []  # one evaluation
    assert units("phase_change", synthetic(config())) == []  # no heads
