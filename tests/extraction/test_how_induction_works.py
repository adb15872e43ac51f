"""Joint ablation, sufficiency and frozen scales on weights whose circuit is known."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from pathsum.bounds import BOUNDS
from pathsum.extraction import (
    attention_sinks,
    formation,
    joint_ablation,
    norm_scales,
    softmax_competition,
    sufficiency,
    suffixes,
)
from pathsum.extraction.causal import Bench
from pathsum.extraction.inputs import TrainedModel, trace_trained
from pathsum.interventions.run import Run
from pathsum.model.transformer import Transformer
from pathsum.probes.evaluation import Evaluation
from pathsum.statistics.rotation import random_rotation
from tests.random_models import HOW, LOG, cell_of, evidence, random_model, seated

PREVIOUS, INDUCTION = 2, 1


def log_of(previous: int, induction: int) -> Evaluation:
    """Return an evaluation of training whose scores select these heads among three per layer."""
    scores = [[float(h == head) for h in range(3)] for head in (previous, induction)]
    return replace(LOG[-1], previous_token=scores, prefix_matching=[[0.0] * 3, scores[1]])


def trained(model: Transformer) -> TrainedModel:
    return trace_trained(model, cell_of(model), [log_of(PREVIOUS, INDUCTION)], evidence(), HOW)


def test_the_seated_circuit_suffices_and_no_other_head_does() -> None:
    rows = sufficiency.tables(trained(seated(PREVIOUS, INDUCTION)), evidence(), HOW)["sufficiency"]
    assert [r.kept for r in rows] == ["another head", "another head", "circuit", "nothing"]
    circuit = rows[2]
    assert (circuit.layer, circuit.head, circuit.early_head) == (1, INDUCTION, PREVIOUS)
    assert circuit.matching_share == pytest.approx(1, abs=0.01)
    assert circuit.gain_share == pytest.approx(1, abs=0.02)
    for r in rows:
        assert r.matching_low <= r.matching_share <= r.matching_high
        if r is not circuit:
            assert r.matching_share < 0.2
            assert r.gain_high < 0.3


def test_the_fewest_windows_leave_no_window_its_own_queries_and_keys() -> None:
    least = BOUNDS["ExtractConfig"]["repeated_windows"].least
    for shifts in (sufficiency.SHIFTS, suffixes.SHIFTS):
        assert {shift % least for shift in (0, *shifts.values())} == {0, *shifts.values()}


def test_without_an_induction_head_past_the_first_layer_there_is_no_circuit() -> None:
    first = replace(LOG[-1], previous_token=[[0.1, 0.2, 0.9]], prefix_matching=[[0.3, 0.0, 0.0]])
    for log in ([], [first]):
        shown = replace(trained(seated(PREVIOUS, INDUCTION)), log=log)
        assert sufficiency.tables(shown, evidence(), HOW) == {"sufficiency": []}


def ablated(model: Transformer, heads: list[tuple[int, int]], method: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss drop and the gain of each window without ``heads``."""
    shown = trained(model)
    rotation = random_rotation(model.W_E.shape[0], torch.Generator().manual_seed(0)).to(model.W_E.dtype)
    windows, copies, block = evidence().windows, shown.repeated_tokens[:5], shown.block
    text = Bench.of(model, windows[:, :-1], windows[:, 1:], slice(None), rotation)
    repeats = Bench.of(model, copies, copies.roll(-1, 1), slice(0, 2 * block), rotation)
    gains = joint_ablation.repeat_gains(repeats, block, heads, method)
    return joint_ablation.loss_drops(text, heads, method), gains


def test_heads_ablated_together_by_zeros_are_a_model_without_them() -> None:
    heads = [(0, 1), (1, 0), (1, 2)]
    model = random_model(3, norm="rms")
    without = copy.deepcopy(model)
    for layer, head in heads:
        without.layers[layer].W_O[head] = 0  # type: ignore[union-attr, index]
    for found, expected in zip(ablated(model, heads, "zero"), ablated(without, [], ""), strict=True):
        torch.testing.assert_close(found, expected)
    assert (ablated(model, heads, "zero")[1] - ablated(model, heads[:2], "zero")[1]).abs().max() > 1e-3


def test_all_gain_from_repetition_goes_with_the_induction_head_and_none_with_others() -> None:
    shown, heads = trained(seated(PREVIOUS, INDUCTION)), [(1, INDUCTION)]
    others = joint_ablation.other_heads(heads, 3, torch.Generator().manual_seed(0))
    assert others == [[(1, 0)], [(1, 2)]]
    tried = joint_ablation.trials(heads, others, last=True)
    rows = joint_ablation.checkpoint_rows(shown.model, shown.log[-1], shown, evidence(), tried, 5)
    assert len(rows) == 4 + 2 * 3
    assert {r.n_heads for r in rows} == {1}
    whole = {r.method: r.loss_drop_lost for r in rows if r.ablated == "induction" and r.method != "rotated"}
    assert max(whole.values()) - min(whole.values()) > 1e-4  # so that another method's would be noticed
    whole["rotated"] = min(whole.values())
    for r in rows:
        lost = r.repeat_gain_lost / r.repeat_gain_nats
        assert lost == pytest.approx(1, abs=0.25) if r.ablated == "induction" and r.method != "rotated" else lost < 0.35
        assert r.behind_nats == pytest.approx(whole[r.method] - r.loss_drop_lost, abs=1e-6)
        assert r.behind_low <= r.behind_nats <= r.behind_high
        assert r.repeat_gain_lost_low <= r.repeat_gain_lost <= r.repeat_gain_lost_high


def test_only_heads_that_match_are_ablated_and_controls_are_as_many_where_there_are_enough() -> None:
    last = replace(LOG[-1], prefix_matching=[[0.0, 0.09], [0.1, 0.5]])
    assert joint_ablation.induction_heads(last) == [(1, 0), (1, 1)]
    assert joint_ablation.other_heads([(1, 0), (1, 1)], 2, torch.Generator()) == []
    assert joint_ablation.other_heads([(1, 0), (1, 1)], 3, torch.Generator()) == [[(1, 2)]]
    several = joint_ablation.other_heads([(0, 0), (1, 0)], 8, torch.Generator().manual_seed(0))
    assert len(several) == joint_ablation.SUBSETS
    assert all([layer for layer, _ in some] == [0, 1] for some in several)


@pytest.mark.parametrize("own", [False, True])
def test_one_head_a_layer_and_their_virtual_head_are_the_whole_model(own: bool) -> None:
    model = random_model(4, n_heads=1, norm="rms")
    clean = Run(model, evidence().windows[:, :-1])
    lower, added = norm_scales.joined(clean, ((0, 0), (1, 0)), own=own)
    torch.testing.assert_close(lower + added, clean.streams[-1])
    if own:  # a path alone reads a smaller stream, so at its own scale it is larger
        _, frozen = norm_scales.joined(clean, ((1, 0),), own=False)
        assert not torch.allclose(norm_scales.joined(clean, ((1, 0),), own=True)[1], frozen)


def test_scales_differ_only_where_there_is_a_norm() -> None:
    rows = norm_scales.tables(trained(random_model(4, norm="rms").float()), evidence(), HOW)["norm_scales"]
    assert [r.order for r in rows] == [1] * 6 + [2] * 9
    assert all(r.difference_nats == pytest.approx(r.own_nats - r.frozen_nats, abs=1e-5) for r in rows)
    assert max(abs(r.difference_nats) for r in rows) > 1e-3
    assert norm_scales.tables(trained(random_model(4, norm="none").float()), evidence(), HOW) == {"norm_scales": []}


def test_a_match_makes_only_the_seated_induction_head_prefer_the_token_after_it() -> None:
    rows = softmax_competition.tables(trained(seated(PREVIOUS, INDUCTION)), evidence(), HOW)["softmax_competition"]
    after = {(r.layer, r.head): r for r in rows if r.place == "after"}
    assert len(rows) == 3 * 6
    assert after.pop((1, INDUCTION)).preference_low > 5
    assert all(abs(r.preference_nats) < 0.5 for r in after.values())


def test_a_silent_head_rests_on_the_first_token_at_no_cost() -> None:
    model = random_model(6, positions="relative").float()
    model.layers[0].W_O[1] = 0  # type: ignore[union-attr, index]
    rows = attention_sinks.tables(trained(model), evidence(), HOW)["attention_sinks"]
    assert [(r.layer, r.head) for r in rows] == [(at, h) for at in (0, 1) for h in (0, 1, 2, None)]
    silent = rows[1]
    assert abs(silent.forbidden_nats) + abs(silent.silenced_nats) + abs(silent.control_nats) < 1e-6
    assert max(abs(r.forbidden_nats) for r in rows) > 1e-3
    assert all(0 < r.attention < 1 and r.attention_low <= r.attention <= r.attention_high for r in rows)


def test_the_key_edge_is_the_score_that_the_previous_token_head_brings() -> None:
    model = seated(PREVIOUS, INDUCTION)
    shown = trained(model)
    run = Run(model, shown.repeated_tokens[:5])
    edge = formation.key_edge(run, PREVIOUS, (1, INDUCTION), shown.block)
    assert edge.min() > 20  # of 30 nats, less the mean over keys and accidental matches in another window
    assert formation.key_edge(run, 0, (1, INDUCTION), shown.block).abs().max() == 0  # a silent head
    assert formation.key_edge(run, PREVIOUS, (1, 0), shown.block).abs().max() < 1e-4  # reads nothing
