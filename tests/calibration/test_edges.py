"""What an edge is worth: the handmade pair needs its keys; what reads nothing of the earlier head needs nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from pathsum.calibration.edges import costs
from pathsum.calibration.world import Grown
from pathsum.circuits.weights import Weights
from tests import handmade
from tests.calibration.grown import N_WORDS, config, stand_in, untrained

D_VOCAB = N_WORDS + 1
PREVIOUS = (30.0, 0.0)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Grown:
    return untrained(config(n_layers=2, tokens=1, repeat_share=0.6), tmp_path_factory.mktemp("runs"))


def worth(grown: Grown, weights: Weights) -> dict[str, float]:
    """At the places of copies."""
    model = stand_in(grown, weights, PREVIOUS)
    return costs(model.subject.model, model.seen, model.world.copied)


def test_an_induction_head_is_worth_nothing_without_its_keys_and_needs_neither_queries_nor_values(
    copies: Grown,
) -> None:
    found = worth(copies, handmade.induction_pair(D_VOCAB))
    assert found["K"] > 0.1
    assert abs(found["Q"]) < 1e-6
    assert abs(found["V"]) < 1e-6


def test_a_head_that_reads_nothing_of_the_earlier_one_has_edges_worth_nothing(copies: Grown) -> None:
    early, (late,) = handmade.induction_pair(D_VOCAB).layers
    deaf = replace(late, W_K=0 * late.W_K)
    weights = replace(handmade.induction_pair(D_VOCAB), layers=(early, (deaf,)))
    assert all(abs(nats) < 1e-6 for nats in worth(copies, weights).values())


def test_a_values_edge_is_worth_what_the_logits_lose_with_the_virtual_head(copies: Grown) -> None:
    """Both heads attend evenly; without its values the virtual head writes what it makes of the earlier head's mean."""
    weights = handmade.virtual_head(D_VOCAB)
    model = stand_in(copies, weights, (0.0, 0.0))
    places, inputs = model.world.copied, model.seen.held_out[:, :-1]
    targets = model.seen.held_out[:, 1:][places].long()
    trace = model.subject.model.trace(inputs)
    mean = trace.outputs[0].mean((0, 2), keepdim=True).expand_as(trace.outputs[0])
    late = weights.layers[1][0]
    written = trace.patterns[1] @ (mean @ (late.W_O @ late.W_V).float().mT)
    stream = model.subject.model.embed(inputs) + trace.outputs[0].sum(1) + written.sum(1)
    losses = [cross_entropy(x[places] @ weights.W_U.float().mT, targets) for x in (stream, _last(model, inputs))]
    found = costs(model.subject.model, model.seen, places)
    assert found["V"] == pytest.approx((losses[0] - losses[1]).item(), abs=1e-5)
    assert abs(found["V"]) > 1e-3
    assert abs(found["Q"]) < 1e-6
    assert abs(found["K"]) < 1e-6


def _last(model: Grown, inputs: torch.Tensor) -> torch.Tensor:
    return model.subject.model.embed(inputs) + sum(o.sum(1) for o in model.subject.model.trace(inputs).outputs)


def test_only_two_layers_with_a_rule_to_learn_have_edges_to_cut(tmp_path: Path) -> None:
    for n_layers, rule, names in (
        (2, {"repeat_share": 0.5}, set("QKV")),
        (2, {}, set()),
        (1, {"repeat_share": 0.5}, set()),
    ):
        assert set(untrained(config(n_layers=n_layers, tokens=1, **rule), tmp_path).edge_costs) == names
