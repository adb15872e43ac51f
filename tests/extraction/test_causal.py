"""The tables of interventions are complete for every depth, and each effect is the difference that its name states."""

import math

import pytest
import torch

from pathsum.core.threads import use_threads
from pathsum.extraction.causal import tables
from pathsum.extraction.inputs import TrainedModel, trace_trained
from pathsum.records.ablations import AblationRow
from tests.extraction.small import HOW, evidence, untrained
from tests.training.small import D_VOCAB


def ablations(trained: TrainedModel) -> list[AblationRow]:
    rows: list[AblationRow] = tables(trained, evidence(), HOW)["ablations"]
    return rows


@pytest.mark.parametrize(
    ("n_layers", "norm", "smeared", "pairs"), [(0, "none", False, 0), (1, "rms", True, 0), (2, "layer", False, 4)]
)
def test_every_head_and_edge_is_intervened_on(n_layers: int, norm: str, smeared: bool, pairs: int) -> None:
    found = tables(untrained(n_layers=n_layers, norm=norm, smeared_keys=smeared), evidence(), HOW)
    counts = [sum(r.target == target for r in found["ablations"]) for target in ("head", "edge", "virtual", "pattern")]
    assert counts == [2 * n_layers * 4 * 2, 9 * pairs, 3 * pairs, 2 * (n_layers > 1)]
    assert len(found["terms"]) == 1 + n_layers + 3 * n_layers
    for r in found["ablations"]:
        assert r.loss_low <= r.loss_nats <= r.loss_high
        assert r.patterns == "recomputed" or r.prefix_matching == 0


def test_orders_tell_the_whole_fall_of_the_loss_at_either_scale() -> None:
    trained = untrained(norm="rms")
    orders = [t for t in tables(trained, evidence(), HOW)["terms"] if t.layer is None]
    windows = evidence().windows
    logits = trained.model(windows[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()).item()
    fall = math.log(D_VOCAB) - loss
    assert sum(t.added_nats for t in orders) == pytest.approx(fall, abs=1e-4)
    assert sum(t.own_scale_nats for t in orders) == pytest.approx(fall, abs=1e-4)
    assert [t.paths for t in orders] == [1, 4, 4]


def test_a_silent_head_can_be_taken_away_and_has_no_edges() -> None:
    trained = untrained(norm="rms")
    trained.model.layers[0].W_O[1] = 0  # type: ignore[union-attr, index]
    silent = trace_trained(trained.model, trained.cell, [], evidence(), HOW)
    rows = [r for r in ablations(silent) if r.target != "pattern"]
    without = [r for r in rows if (r.layer, r.head) == (0, 1) or (r.early_layer, r.early_head) == (0, 1)]
    assert len(without) == 8 + 2 * (9 + 3)
    assert max(abs(r.loss_nats) + abs(r.second_copy_nats) + abs(r.prefix_matching) for r in without) < 1e-6
    assert max(abs(r.loss_nats) for r in rows) > 1e-3


def test_without_a_norm_a_virtual_head_is_its_value_edge() -> None:
    rows = ablations(untrained(norm="none"))
    edges = {(r.early_head, r.head, r.method): r.loss_nats for r in rows if r.kind == "V"}
    virtual = {(r.early_head, r.head, r.method): r.loss_nats for r in rows if r.target == "virtual"}
    assert virtual == pytest.approx(edges, abs=1e-6)
    assert len(virtual) == 12


def test_threads_do_not_change_the_table() -> None:
    trained = untrained(n_layers=3)
    one = ablations(trained)
    use_threads(2)
    try:
        assert ablations(trained) == one
    finally:
        use_threads(1)
