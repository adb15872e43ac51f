"""What an edge costs: the handmade pair needs its keys; what reads nothing of the earlier head needs nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from pathsum.calibration.edges import edge_costs
from pathsum.calibration.world import Grown
from pathsum.circuits.weights import Weights
from tests import handmade
from tests.calibration.grown import N_WORDS, config, stand_in, untrained

D_VOCAB = N_WORDS + 1
PREVIOUS = (30.0, 0.0)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Grown:
    return untrained(config(n_layers=2, tokens=1, repeat_share=0.6), tmp_path_factory.mktemp("runs"))


def at_copies(grown: Grown, weights: Weights) -> dict[str, float]:
    model = stand_in(grown, weights, PREVIOUS)
    return edge_costs(model.subject.model, model.seen, model.world.copied)


def test_an_induction_head_needs_its_keys_and_needs_neither_queries_nor_values(
    copies: Grown,
) -> None:
    found = at_copies(copies, handmade.induction_pair(D_VOCAB))
    assert found["K"] > 0.1
    assert abs(found["Q"]) < 1e-6
    assert abs(found["V"]) < 1e-6


def test_a_head_that_reads_nothing_of_the_earlier_one_has_edges_worth_nothing(copies: Grown) -> None:
    early, (late,) = handmade.induction_pair(D_VOCAB).layers
    deaf = replace(late, W_K=0 * late.W_K)
    weights = replace(handmade.induction_pair(D_VOCAB), layers=(early, (deaf,)))
    assert all(abs(nats) < 1e-6 for nats in at_copies(copies, weights).values())


def test_a_values_edge_costs_what_the_logits_lose_with_the_virtual_head(copies: Grown) -> None:
    """Both heads attend evenly; without its values the virtual head writes what it makes of the earlier head's mean, or
    of what that wrote in the window before, whichever does less harm."""
    weights = handmade.virtual_head(D_VOCAB)
    model = stand_in(copies, weights, (0.0, 0.0))
    places, inputs = model.world.copied, model.seen.held_out[:, :-1]
    targets = model.seen.held_out[:, 1:][places].long()
    trace = model.subject.model.trace(inputs)
    mean = trace.outputs[0].mean((0, 2), keepdim=True).expand_as(trace.outputs[0])
    late = weights.layers[1][0]

    def loss(read: torch.Tensor) -> float:
        written = trace.patterns[1] @ (read @ (late.W_O @ late.W_V).float().mT)
        stream = model.subject.model.embed(inputs) + trace.outputs[0].sum(1) + written.sum(1)
        return cross_entropy(stream[places] @ weights.W_U.float().mT, targets).item()

    clean, otherwise = loss(trace.outputs[0]), [loss(mean), loss(trace.outputs[0].roll(1, 0))]
    found = edge_costs(model.subject.model, model.seen, places)
    assert found["V"] == pytest.approx(min(otherwise) - clean, abs=1e-5)
    assert abs(otherwise[0] - otherwise[1]) > 1e-3
    assert abs(found["V"]) > 1e-3
    assert abs(found["Q"]) < 1e-6
    assert abs(found["K"]) < 1e-6


def test_only_two_layers_with_a_rule_to_learn_have_edges_to_cut(tmp_path: Path) -> None:
    for n_layers, rule, names in (
        (2, {"repeat_share": 0.5}, set("QKV")),
        (2, {}, set()),
        (1, {"repeat_share": 0.5}, set()),
    ):
        assert set(untrained(config(n_layers=n_layers, tokens=1, **rule), tmp_path).edge_costs) == names
