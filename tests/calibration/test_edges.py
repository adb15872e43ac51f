"""The effect of an edge on the loss, in hand-made models where it is known."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from pathsum.calibration.edges import Edge, edge_effects, late_head_effects
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.core.weights import Weights
from tests import handmade
from tests.calibration.synthetic import N_WORDS, config, transformer, untrained

D_VOCAB = N_WORDS + 1
PREVIOUS = (30.0, 0.0)


@pytest.fixture(scope="module")
def copies() -> SyntheticModel:
    return untrained(config(n_layers=2, steps=1, repeat_share=0.6))


def at_copies(synthetic: SyntheticModel, weights: Weights, bias: tuple[float, float] = PREVIOUS) -> dict[Edge, float]:
    model = transformer(weights, synthetic.text.config.model, bias)
    return edge_effects(model, synthetic.text.held_out, synthetic.text.copied)


def test_an_induction_head_needs_its_keys_and_needs_neither_queries_nor_values(copies: SyntheticModel) -> None:
    found = at_copies(copies, handmade.induction_pair(D_VOCAB))
    assert found["K", 0, 0] > 0.1
    assert abs(found["Q", 0, 0]) < 1e-6
    assert abs(found["V", 0, 0]) < 1e-6


def test_heads_that_stand_in_for_each_other_have_an_edge_each_and_a_silent_one_has_none(copies: SyntheticModel) -> None:
    """Without the key edge of one of two equal induction heads, the loss hardly changes. If only one of the edges is
    left, it reduces the loss as much as in a single induction head."""
    weights = handmade.induction_pair(D_VOCAB)
    (early,), (late,) = weights.layers
    twins = replace(weights, layers=((early, replace(early, W_O=0 * early.W_O)), (late, late)))
    lone, found = at_copies(copies, weights)["K", 0, 0], at_copies(copies, twins)
    for head in (0, 1):
        assert found["K", 0, head] > 0.9 * lone
        assert abs(found["K", 1, head]) < 1e-6
    assert set(found) == {(kind, a, b) for kind in "QKV" for a in (0, 1) for b in (0, 1)}
    deaf = replace(weights, layers=((early,), (replace(late, W_K=0 * late.W_K),)))
    assert all(abs(nats) < 1e-6 for nats in at_copies(copies, deaf).values())


def test_a_values_edge_costs_what_the_logits_lose_with_the_virtual_head(copies: SyntheticModel) -> None:
    """Both heads attend uniformly. Without the V-edge, the late head reads the early head's mean or its write in
    another window; the replacement with the lower loss counts."""
    weights, text = handmade.virtual_head(D_VOCAB), copies.text
    model = transformer(weights, text.config.model, (0.0, 0.0))
    places, inputs = text.copied, text.held_out[:, :-1]
    targets = text.held_out[:, 1:][places]
    trace = model.trace(inputs)
    mean = trace.outputs[0].mean((0, 2), keepdim=True).expand_as(trace.outputs[0])
    late = weights.layers[1][0]

    def loss(read: torch.Tensor) -> float:
        written = trace.patterns[1] @ (read @ (late.W_O @ late.W_V).float().mT)
        stream = model.embed(inputs) + trace.outputs[0].sum(1) + written.sum(1)
        return cross_entropy(stream[places] @ weights.W_U.float().mT, targets).item()

    clean, otherwise = loss(trace.outputs[0]), [loss(mean), loss(trace.outputs[0].roll(1, 0))]
    found = at_copies(copies, weights, (0.0, 0.0))
    assert found["V", 0, 0] == pytest.approx(min(otherwise) - clean, abs=1e-5)
    assert abs(otherwise[0] - otherwise[1]) > 1e-3
    assert abs(found["V", 0, 0]) > 1e-3
    assert abs(found["Q", 0, 0]) < 1e-6
    assert abs(found["K", 0, 0]) < 1e-6


def test_only_two_layers_with_a_rule_to_learn_have_edges_to_remove() -> None:
    for n_layers, rule, kinds in (
        (2, {"repeat_share": 0.5}, set("QKV")),
        (2, {}, set()),
        (1, {"repeat_share": 0.5}, set()),
    ):
        found = untrained(config(n_layers=n_layers, steps=1, **rule)).edges
        assert {kind for kind, *_ in found} == kinds


def test_a_silent_head_is_worth_nothing_and_a_lone_induction_head_all_that_its_edge_is(copies: SyntheticModel) -> None:
    """Two equal heads replace each other: each has the effect that it has alone."""
    weights, text = handmade.induction_pair(D_VOCAB), copies.text
    (early,), (late,) = weights.layers
    silent = replace(late, W_O=0 * late.W_O)
    heads, found = {"lone": (late, silent), "twins": (late, late)}, {}
    for name, pair in heads.items():
        layers = ((early, replace(early, W_O=0 * early.W_O)), pair)
        model = transformer(replace(weights, layers=layers), text.config.model, PREVIOUS)
        found[name] = late_head_effects(model, text.held_out, text.copied)
    assert found["lone"][0] > 0.1
    assert abs(found["lone"][1]) < 1e-6
    assert found["twins"][0] == pytest.approx(found["twins"][1], abs=1e-6)
    assert found["twins"][0] > 0.9 * found["lone"][0]
