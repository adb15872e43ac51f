"""Each detector finds what it must in models whose circuits are known, and nothing where there is nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pathsum.calibration.detectors import DETECTORS, SUCCESSORS, UNUSED_NATS, USED_NATS, Unit
from pathsum.calibration.world import Grown
from pathsum.circuits.weights import Weights
from pathsum.config import WorldConfig
from tests import handmade
from tests.calibration.grown import (
    HOW,
    N_WORDS,
    config,
    log,
    smeared_induction,
    stand_in,
    turned,
    untrained,
    without_qk,
)

D_VOCAB = N_WORDS + 1
HIT, MISS, FALSE_FIND, NOTHING = (True, True), (True, False), (False, True), (False, False)
Make = Callable[[WorldConfig], Grown]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """An untrained model in a world that says that its models are trained; each world is made once."""
    folder, made = tmp_path_factory.mktemp("runs"), dict[str, Grown]()

    def make(config: WorldConfig) -> Grown:
        name = config.model_dump_json()
        if name not in made:
            made[name] = untrained(config, folder)
        return made[name]

    return make


def units(name: str, *models: Grown) -> list[Unit]:
    return list(DETECTORS[name](models))


def induction_pair(previous: float = 30.0) -> tuple[Weights, tuple[float, float]]:
    """And the bias by which its first head looks at the token before."""
    return handmade.induction_pair(D_VOCAB), (previous, 0.0)


# ---- bigrams --------------------------------------------------------------------------------------------------------


def bigram_model(grown: Grown, sign: float) -> Grown:
    """Its direct path is the table of the text, in logs, or the opposite; BOS would follow everything."""
    table = torch.full((D_VOCAB, D_VOCAB), 99.0)
    table[1:, 1:] = sign * torch.tensor(grown.world.truth.bigram).log().mT
    return stand_in(grown, handmade.bigram(table))


def test_a_model_of_the_table_has_each_words_likeliest_successors(grown: Make) -> None:
    assert units("bigram", bigram_model(grown(config()), 1)) == [HIT] * (SUCCESSORS * N_WORDS)


def test_a_model_of_the_opposite_table_has_none_of_them(grown: Make) -> None:
    found = Counter(units("bigram", bigram_model(grown(config()), -1)))
    assert found == {MISS: SUCCESSORS * N_WORDS, FALSE_FIND: SUCCESSORS * N_WORDS}


def test_bigrams_are_looked_for_in_models_without_layers_only(grown: Make) -> None:
    assert units("bigram", grown(config(n_layers=1))) == []


# ---- skip-trigrams --------------------------------------------------------------------------------------------------

M = 5  # triples
SKIPS = config(n_layers=1, tokens=1, n_skip_trigrams=M, max_documents=1009)


def skips(folder: Path) -> Grown:
    """Enough text is held out that each triple is there often."""
    return untrained(SKIPS, folder, held_out=907)


def skip_head(grown: Grown, out_shift: int = 0, strength: float = 9.0) -> Grown:
    """From each destination it looks for the source by 9 nats, which raises its out, or another triple's."""
    truth, qk, ov = grown.world.truth, torch.zeros(D_VOCAB, D_VOCAB), torch.zeros(D_VOCAB, D_VOCAB)
    outs = truth.skip_outs[out_shift:] + truth.skip_outs[:out_shift]
    for source, destination, out in zip(truth.skip_sources, truth.skip_destinations, outs, strict=True):
        qk[destination + 1, source + 1], ov[out + 1, source + 1] = 9, strength
    return stand_in(grown, handmade.skip_trigram_head(qk, ov))


def test_a_head_of_the_planted_skip_trigrams_has_them_all_and_no_others(tmp_path: Path) -> None:
    """Its list is as long as there are triples."""
    assert HOW.top_k == M
    assert units("skip_trigram", skip_head(skips(tmp_path))) == [HIT] * M


def test_a_head_that_writes_nothing_or_the_wrong_outs_has_none_of_them(tmp_path: Path) -> None:
    grown = skips(tmp_path)
    assert units("skip_trigram", skip_head(grown, strength=0.0)) == [MISS] * M
    assert units("skip_trigram", skip_head(grown, out_shift=1)) == [MISS] * M


def test_a_triple_that_was_not_planted_is_a_false_find(tmp_path: Path) -> None:
    """The same head, but the truth knows of one triple less, and of one in another place."""
    model = skip_head(skips(tmp_path))
    fewer = {f: getattr(model.world.truth, f)[1:] for f in ("skip_sources", "skip_destinations", "skip_outs")}
    world = replace(model.world, truth=replace(model.world.truth, **fewer))
    assert Counter(units("skip_trigram", replace(model, world=world))) == {HIT: M - 1, FALSE_FIND: 1}


def test_without_planted_triples_or_without_heads_there_is_nothing_to_say(grown: Make) -> None:
    assert units("skip_trigram", grown(config(n_layers=1)), grown(config(n_layers=0, n_skip_trigrams=M))) == []


# ---- previous-token heads -------------------------------------------------------------------------------------------


def test_a_first_layer_head_that_looks_at_the_token_before_is_found(grown: Make) -> None:
    model = stand_in(grown(config(n_layers=2, tokens=1, two_back_spread=1.0)), *induction_pair())
    assert units("previous_token", model) == [HIT, NOTHING]


def test_an_even_first_layer_head_is_missed(grown: Make) -> None:
    model = stand_in(grown(config(n_layers=2, tokens=1, two_back_spread=1.0)), *induction_pair(previous=0.0))
    assert units("previous_token", model) == [MISS, NOTHING]


def test_a_later_head_that_looks_at_the_token_before_is_a_false_find(grown: Make) -> None:
    grown_ = grown(config(n_layers=2, tokens=1, two_back_spread=1.0))
    model = stand_in(grown_, without_qk(handmade.induction_pair(D_VOCAB), 1), (0.0, 30.0))
    assert units("previous_token", model) == [MISS, FALSE_FIND]


@pytest.mark.parametrize("without", [{"two_back_spread": 0.0, "tokens": 1}, {"two_back_spread": 1.0, "tokens": 0}])
def test_where_the_word_two_back_tells_nothing_or_nothing_was_told_none_is_planted(
    grown: Make, without: dict[str, float]
) -> None:
    model = stand_in(grown(config(n_layers=2, **without)), *induction_pair())  # type: ignore[arg-type]
    assert units("previous_token", model) == [FALSE_FIND, NOTHING]


# ---- induction and copying ------------------------------------------------------------------------------------------

COPIES = config(n_layers=2, tokens=1, repeat_share=0.5)


def test_the_later_head_of_an_induction_pair_is_found(grown: Make) -> None:
    assert units("induction", stand_in(grown(COPIES), *induction_pair())) == [NOTHING, HIT]


def test_a_pair_without_its_previous_token_head_or_its_matching_is_missed(grown: Make) -> None:
    weights, bias = induction_pair()
    assert units("induction", stand_in(grown(COPIES), weights, (0.0, 0.0))) == [NOTHING, MISS]
    assert units("induction", stand_in(grown(COPIES), without_qk(weights, 1), bias)) == [NOTHING, MISS]


def test_where_nothing_is_copied_an_induction_pair_is_a_false_find(grown: Make) -> None:
    assert units("induction", stand_in(grown(config(n_layers=2, tokens=1)), *induction_pair())) == [NOTHING, FALSE_FIND]


def test_in_one_layer_induction_is_planted_where_keys_know_what_stood_before_them(grown: Make) -> None:
    smeared = grown(config(n_layers=1, tokens=1, smeared_keys=True, repeat_share=0.5))
    model = stand_in(smeared, smeared_induction(D_VOCAB), smear=-20.0)
    assert units("induction", model) == [HIT]
    assert units("induction", stand_in(smeared, smeared_induction(D_VOCAB), smear=20.0)) == [MISS]  # looks at itself
    plain = grown(config(n_layers=1, tokens=1, repeat_share=0.5))
    assert units("induction", replace(model, world=plain.world)) == [FALSE_FIND]


def test_a_head_that_copies_is_found_and_one_that_deletes_is_not(grown: Make) -> None:
    smeared = grown(config(n_layers=1, tokens=1, smeared_keys=True, repeat_share=0.5))
    copying, deleting = handmade.copying_head(D_VOCAB), handmade.deleting_head(D_VOCAB)
    silent = handmade.copying_head(D_VOCAB, strength=0.0)
    models = [stand_in(smeared, weights, smear=0.0) for weights in (copying, deleting, silent)]
    assert units("copying", *models) == [HIT, MISS, MISS]


def test_where_nothing_is_to_be_copied_a_head_that_copies_is_a_false_find(grown: Make) -> None:
    plain = grown(config(n_layers=1, tokens=1))
    models = [stand_in(plain, w) for w in (handmade.copying_head(D_VOCAB), handmade.deleting_head(D_VOCAB))]
    assert units("copying", *models) == [FALSE_FIND, NOTHING]


def test_what_cannot_be_known_of_copying_is_left_out(grown: Make) -> None:
    """An earlier head may copy for the later one; so may heads that answer."""
    assert units("copying", stand_in(grown(COPIES), *induction_pair())) == [HIT]
    for answering in (ANSWERS, LOOKUPS):
        assert units("copying", stand_in(grown(answering), handmade.virtual_head(D_VOCAB))) == []


def test_which_layer_tells_the_word_before_is_not_known_of_lookups(grown: Make) -> None:
    told = {"n_layers": 2, "tokens": 1, "two_back_spread": 1.0}
    for more, expected in (({}, 2), ({"n_answers": 2}, 0)):
        assert len(units("previous_token", stand_in(grown(config(**told, **more)), *induction_pair()))) == expected


# ---- composition ----------------------------------------------------------------------------------------------------

ANSWERS = config(n_layers=2, tokens=1, questions=True)
LOOKUPS = config(n_layers=2, tokens=1, n_answers=2)
POINTERS = handmade.pointer_pair(D_VOCAB)[0]
COMPOSING = [
    ("composition_q", LOOKUPS, POINTERS),
    ("composition_k", COPIES, handmade.induction_pair(D_VOCAB)),
    ("composition_v", ANSWERS, handmade.virtual_head(D_VOCAB)),
]


@pytest.mark.parametrize(("name", "where", "weights"), COMPOSING)
def test_heads_that_compose_do_so_within_a_model_and_not_from_one_to_the_next(
    grown: Make, name: str, where: WorldConfig, weights: Weights
) -> None:
    """Each model has a basis of its own; a model's edge is followed by the one to the next model's later head."""
    models = [stand_in(grown(where), turned(weights, seed)) for seed in range(3)]
    assert units(name, *models) == [HIT, NOTHING] * 3


@pytest.mark.parametrize(("name", "where", "weights"), COMPOSING)
def test_an_edge_between_models_with_one_basis_is_a_false_find(
    grown: Make, name: str, where: WorldConfig, weights: Weights
) -> None:
    """No edge between models counts as planted, even where it is there."""
    models = [stand_in(grown(where), weights) for _ in range(2)]
    assert units(name, *models) == [HIT, FALSE_FIND] * 2


@pytest.mark.parametrize(("name", "where", "weights"), COMPOSING)
def test_a_later_head_that_reads_nothing_of_the_earlier_one_is_missed(
    grown: Make, name: str, where: WorldConfig, weights: Weights
) -> None:
    (early,), (late,) = weights.layers
    deaf = replace(weights, layers=((replace(early, W_O=early.W_O.roll(D_VOCAB, 0)),), (late,)))  # into another room
    models = [stand_in(grown(where), turned(deaf, seed)) for seed in range(2)]
    assert units(name, *models)[::2] == [MISS] * 2


@pytest.mark.parametrize(("name", "where", "weights"), COMPOSING)
def test_a_lone_model_has_no_next_one(grown: Make, name: str, where: WorldConfig, weights: Weights) -> None:
    assert units(name, stand_in(grown(where), weights)) == [HIT]
    assert units(name) == []


@pytest.mark.parametrize(("name", "where", "weights"), COMPOSING)
def test_an_edge_that_a_model_does_not_rely_on_is_a_false_find_and_one_in_doubt_is_left_out(
    grown: Make, name: str, where: WorldConfig, weights: Weights
) -> None:
    """It has learnt the rule in another way; what its other edges cost does not matter."""
    model, kind = stand_in(grown(where), weights), name[-1].upper()
    for nats, expected in ((USED_NATS, [HIT]), (0.3, []), (UNUSED_NATS, [FALSE_FIND]), (-1.0, [FALSE_FIND])):
        costs = {reader: nats if reader == kind else 9.0 for reader in "QKV"}
        assert units(name, replace(model, edge_costs=costs)) == expected


@pytest.mark.parametrize(("name", "where", "weights"), COMPOSING)
def test_every_edge_is_held_against_what_it_costs_whatever_the_text_asks_for(
    grown: Make, name: str, where: WorldConfig, weights: Weights
) -> None:
    """Within the model: one edge of three is in the handmade weights, and the negative control has all but that one."""
    kind, elsewhere = name[-1].upper(), stand_in(grown(config(n_layers=2, tokens=1)), weights)
    right = {reader: 9.0 if reader == kind else 0.0 for reader in "QKV"}
    wrong = {reader: 9.0 - cost for reader, cost in right.items()}
    assert Counter(units("composition", replace(elsewhere, edge_costs=right))) == {HIT: 1, NOTHING: 2}
    assert Counter(units("composition", replace(elsewhere, edge_costs=wrong))) == {FALSE_FIND: 1, MISS: 2}
    assert units("composition", replace(elsewhere, edge_costs={})) == []


def test_an_edge_of_another_kind_or_without_need_is_not_asked_for(grown: Make) -> None:
    pair = handmade.induction_pair(D_VOCAB)
    assert units("composition_v", *[stand_in(grown(COPIES), turned(pair, seed)) for seed in range(2)]) == []
    assert units("composition_k", *[stand_in(grown(ANSWERS), turned(pair, seed)) for seed in range(2)]) == []
    assert units("composition_q", *[stand_in(grown(COPIES), turned(POINTERS, seed)) for seed in range(2)]) == []
    smeared = grown(config(n_layers=2, tokens=1, smeared_keys=True, repeat_share=0.5))
    assert units("composition_k", stand_in(smeared, pair, smear=2.0)) == []


def test_composition_of_one_kind_is_none_of_another(grown: Make) -> None:
    for name, where, own in COMPOSING:
        for weights in (weights for _, _, weights in COMPOSING if weights is not own):
            assert units(name, *[stand_in(grown(where), turned(weights, seed)) for seed in range(2)])[::2] == [MISS] * 2


@pytest.mark.parametrize(("name", "where"), [(name, where) for name, where, _ in COMPOSING])
def test_heads_without_structure_compose_neither_within_nor_between_models(
    grown: Make, name: str, where: WorldConfig
) -> None:
    models = [
        stand_in(grown(where), handmade.random_weights(seed, n_layers=2, n_heads=1, d_vocab=D_VOCAB))
        for seed in range(5)
    ]
    assert units(name, *models) == [MISS, NOTHING] * 5


# ---- phase change ---------------------------------------------------------------------------------------------------

TOKENS = [0, 10, 20, 30, 40, 50]
FORMS = [0.0, 0.0, 0.0, 0.6, 0.6, 0.6]  # half-way between 20 and 30
FALLS = [5.0, 5.0, 5.0, 1.0, 1.0, 1.0]


def changing(grown: Grown, matching: list[float], copied: list[float] | None) -> Grown:
    losses = {} if copied is None else {"copied": copied}
    return replace(grown, subject=replace(grown.subject, log=log(TOKENS, matching)), losses=losses)


def test_a_loss_that_falls_as_prefix_matching_forms_is_a_hit(grown: Make) -> None:
    assert units("phase_change", changing(grown(COPIES), FORMS, FALLS)) == [HIT]
    next_to = [5.0, 5.0, 5.0, 5.0, 1.0, 1.0]  # between 30 and 40: no evaluation lies between
    assert units("phase_change", changing(grown(COPIES), FORMS, next_to)) == [HIT]


@pytest.mark.parametrize("copied", [[5.0, 5.0, 5.0, 5.0, 5.0, 1.0], [5.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
def test_a_change_at_another_time_is_missed_and_a_false_find(grown: Make, copied: list[float]) -> None:
    """Later and earlier."""
    assert units("phase_change", changing(grown(COPIES), FORMS, copied)) == [MISS, FALSE_FIND]


def test_a_loss_that_falls_without_prefix_matching_is_missed(grown: Make) -> None:
    assert units("phase_change", changing(grown(COPIES), [0.0] * 6, FALLS)) == [MISS, NOTHING]


@pytest.mark.parametrize("copied", [None, [5.0] * 6, [5.0, 5.0, 5.0, 4.1, 4.1, 4.1]])
def test_without_a_fall_of_a_nat_no_change_is_planted(grown: Make, copied: list[float] | None) -> None:
    assert units("phase_change", changing(grown(COPIES), FORMS, copied)) == [FALSE_FIND]
    assert units("phase_change", changing(grown(COPIES), [0.0] * 6, copied)) == [NOTHING]


def test_models_that_cannot_change_are_left_out(grown: Make) -> None:
    assert units("phase_change", grown(COPIES)) == []  # one evaluation
    assert units("phase_change", grown(config())) == []  # no heads


# ---- nothing at all -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["previous_token", "induction", "copying"])
def test_in_untrained_models_nothing_is_found(grown: Make, name: str) -> None:
    """One head in one layer, and two in two; of a world that plants nothing."""
    assert units(name, *[grown(config(n_layers=n)) for n in (0, 1, 2)]) == [NOTHING] * 3
