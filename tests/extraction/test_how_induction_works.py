"""Joint ablation, sufficiency and frozen scales on weights whose circuit is known."""

import copy
from dataclasses import replace

import pytest
import torch

from pathsum.config import ExtractConfig
from pathsum.extraction import (
    attention_sinks,
    circuit,
    formation,
    joint_ablation,
    norm_scales,
    softmax_competition,
    sufficiency,
)
from pathsum.extraction.causal import Bench
from pathsum.extraction.circuit import Roles
from pathsum.extraction.inputs import EvalData, TrainedModel, trace_trained
from pathsum.interventions.run import Run
from pathsum.model.transformer import Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.records.sufficiency import HEADS, Kept, SufficiencyRow
from pathsum.statistics.rotation import random_rotation
from pathsum.training.evaluate import token_losses
from tests import handmade
from tests.random_models import D_VOCAB, HOW, LOG, cell_of, evidence, random_model, seated

PREVIOUS, INDUCTION = 2, 1


def log_of(previous: int, induction: int) -> Evaluation:
    """Return an evaluation of training whose scores select these heads among three per layer."""
    scores = [[float(h == head) for h in range(3)] for head in (previous, induction)]
    return replace(LOG[-1], previous_token=scores, prefix_matching=[[0.0] * 3, scores[1]])


def there(value: float | None) -> float:
    assert value is not None
    return value


def trained(model: Transformer) -> TrainedModel:
    return trace_trained(model, cell_of(model), [log_of(PREVIOUS, INDUCTION)], evidence(), HOW)


def test_the_seated_circuit_suffices_and_nothing_does_without_its_previous_token_head() -> None:
    rows = sufficiency.tables(trained(seated(PREVIOUS, INDUCTION)), evidence(), HOW)["sufficiency"]
    left = {Kept(r.kept): r for r in rows}
    assert list(left) == list(Kept)
    assert {(r.layer, r.head, r.windows) for r in rows} == {(1, INDUCTION, sufficiency.WINDOWS)}
    assert left[Kept.KEY].heads == left[Kept.MINIMAL].heads == "L0H2"
    for kept in (Kept.MODEL, Kept.CIRCUIT, Kept.NO_TWO_BACK, Kept.KEY, Kept.KEYS, Kept.PREFERENCE, Kept.MINIMAL):
        assert left[kept].matching_share == pytest.approx(1, abs=0.01)
    for kept in (Kept.NO_PREVIOUS, Kept.OTHERS, Kept.NO_KEYS, Kept.NEITHER, Kept.ANOTHER, Kept.NOTHING):
        assert (left[kept].matching_share or 0) < 0.2
    assert left[Kept.CIRCUIT].gain_share == pytest.approx(1, abs=0.02)
    assert there(left[Kept.OTHERS].gain_high) < 0.3
    for r in rows:
        assert there(r.matching_low) <= there(r.matching_share) <= there(r.matching_high)
        assert (r.repeat_gain_nats is None) == (r.kept not in HEADS)
        assert (r.loss_drop_nats is None) == (r.kept not in sufficiency.ON_TEXT)


def test_a_drop_that_the_bigram_model_has_too_is_no_share() -> None:
    """The model stands for the bigram model, so nothing of its own drop is left."""
    model, windows = seated(PREVIOUS, INDUCTION), handmade.repeated_tokens(3, 29, D_VOCAB, 11)
    windows = torch.cat([windows, windows[:, 1:2]], 1)
    flat = torch.zeros(29, windows.shape[1] - 1, dtype=torch.float64)
    text = {"held_out": windows, "documents": torch.arange(29), "windows": windows[:5]}
    shown, data = trained(model), replace(evidence(), **text, bigram_losses=flat)
    same = replace(data, bigram_losses=token_losses(model, windows))
    whole, *kept = rows_on_text(shown, data)
    assert whole.loss_drop_share == 1
    nothing, *left = rows_on_text(shown, same)
    assert nothing.loss_drop_nats == pytest.approx(0, abs=1e-5)
    assert nothing.loss_drop_share is nothing.loss_drop_low is nothing.loss_drop_high is None
    drop = there(whole.loss_drop_nats)
    assert drop > 0.3
    for before, after in zip(kept, left, strict=True):
        assert after.loss_drop_nats == pytest.approx(there(before.loss_drop_nats) - drop, abs=1e-5)
        assert after.loss_drop_share is None


def rows_on_text(shown: TrainedModel, data: EvalData) -> list[SufficiencyRow]:
    return [r for r in sufficiency.tables(shown, data, HOW)["sufficiency"] if r.kept in sufficiency.ON_TEXT]


def first_layer(kept: Kept, *heads: int) -> sufficiency.Trial:
    return sufficiency.Trial(kept, tuple((0, h) for h in heads))


@pytest.mark.parametrize("norm", ["none", "rms", "layer"])
def test_a_circuit_of_all_heads_is_the_model(norm: str) -> None:
    """Identity in float64, with responding norms."""
    clean = Run(random_model(7, norm=norm), evidence().windows[:, :-1])
    readers = [sufficiency.Reader(clean, (1, h)) for h in range(3)]
    run = sufficiency.keep_heads(readers, first_layer(Kept.CIRCUIT, 0, 1, 2))
    torch.testing.assert_close(run.logits(), clean.logits(), rtol=1e-12, atol=1e-12)
    for late, reader in enumerate(readers):
        torch.testing.assert_close(run.patterns[1][late], clean.pattern(reader.late), rtol=1e-12, atol=1e-12)


def test_a_head_that_is_not_kept_is_that_of_another_window_everywhere() -> None:
    """The induction head reads the streams by hand, at their own norm scale, and so does the unembedding."""
    model = random_model(7, norm="rms", positions="relative")
    clean = Run(model, evidence().windows[:, :-1])
    kept, others = clean.output((0, 1)), clean.output((0, 0)) + clean.output((0, 2))
    run = sufficiency.keep_heads([sufficiency.Reader(clean, (1, 2))], first_layer(Kept.CIRCUIT, 1))
    parts = {}
    for side, shift in sufficiency.SHIFTS.items():
        read = model.normalise(clean.streams[0] + kept + others.roll(shift, 0))[0]
        parts[side] = model.attention(1).queries_keys_values(read)["QKV".index(side)]
    pattern = model.attention(1).pattern(parts["Q"], parts["K"])[:, 2]
    torch.testing.assert_close(run.patterns[1][2], pattern, rtol=1e-12, atol=1e-12)
    late = pattern @ parts["V"][:, 2] @ model.attention(1).W_O[2].mT
    resampled = others + clean.output((1, 0)) + clean.output((1, 1))
    x = clean.streams[0] + kept + late + resampled.roll(1, 0)
    torch.testing.assert_close(run.read, model.normalise(x)[0], rtol=1e-12, atol=1e-12)


def test_a_path_at_the_frozen_scale_is_path_patching() -> None:
    clean = Run(random_model(7, norm="rms", positions="relative"), evidence().windows[:, :-1])
    first, late, early = [(0, h) for h in range(3)], (1, 2), (0, 1)
    edges = {(side, h): clean.output(h).roll(sufficiency.SHIFTS[side], 0) for side in "QK" for h in first}
    edges["K", early] = clean.output(early)
    edges["K", first[0]] = edges["K", first[0]] + clean.streams[0].roll(1, 0) - clean.streams[0]
    expected = clean.patch_edges(late, edges).replaced[late].pattern
    reader = sufficiency.Reader(clean, late)
    frozen, own = (reader.pattern((sufficiency.EMBEDDING,), (early,), frozen) for frozen in (True, False))
    torch.testing.assert_close(frozen, expected, rtol=1e-12, atol=1e-12)
    assert (own - expected).abs().max() > 1e-3


def test_a_model_of_one_head_per_layer_has_no_sets_of_other_heads() -> None:
    roles = Roles((1, 0), ((0, 0),), (), ((1, 0),))
    kept = [t.kept for t in sufficiency.trials(roles, (0, 0), [(0, 0)])]
    assert kept == [k for k in Kept if k not in (Kept.NO_TWO_BACK, Kept.NEITHER, Kept.ANOTHER)]


def test_the_fewest_windows_leave_no_window_its_own_queries_and_keys() -> None:
    least = next(m.ge for m in ExtractConfig.model_fields["repeated_windows"].metadata if hasattr(m, "ge"))
    for shifts, windows in ((sufficiency.SHIFTS, sufficiency.FEWEST), (circuit.SHIFTS, least)):
        assert {shift % windows for shift in (0, *shifts.values())} == {0, *shifts.values()}


def test_without_an_induction_head_past_the_first_layer_there_is_no_circuit() -> None:
    first = replace(LOG[-1], previous_token=[[0.1, 0.2, 0.9]], prefix_matching=[[0.3, 0.0, 0.0]])
    for log in ([], [first]):
        shown = replace(trained(seated(PREVIOUS, INDUCTION)), log=log)
        assert sufficiency.tables(shown, evidence(), HOW) == {"sufficiency": []}


def ablated(model: Transformer, heads: list[tuple[int, int]], method: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss drop and the gain of each window without ``heads``."""
    shown = trained(model)
    rotation = random_rotation(model.W_E.shape[0], torch.Generator().manual_seed(0)).to(model.W_E.dtype)
    copies, block, trial = shown.repeated_tokens[:5], shown.block, joint_ablation.Trial("", heads, method)
    repeats = Bench.of(model, copies, copies.roll(-1, 1), slice(0, 2 * block), rotation)
    gains = joint_ablation.repeat_gains(repeats, block, joint_ablation.ablated(repeats, trial, [rotation]))
    (drops,) = joint_ablation.text_drops(model, evidence().windows, [trial], [rotation], shown.natural, 5)
    return drops, gains


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
    assert len(rows) == 3 + joint_ablation.ROTATIONS + 2 * 3
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


def test_keys_too_far_for_float32_have_the_preference_of_near_ones() -> None:
    """A bias by distance alone cancels, also where it makes the attention to the match smaller than 1e-38."""
    model = random_model(6, n_layers=1, positions="relative").float()
    near = softmax_competition.tables(trained(model), evidence(), HOW)["softmax_competition"]
    model.layers[0].bias[:, 2:] -= 200  # type: ignore[union-attr, index, operator]
    far = softmax_competition.tables(trained(model), evidence(), HOW)["softmax_competition"]
    assert [r.preference_nats for r in far] == pytest.approx([r.preference_nats for r in near], abs=1e-3)
    assert max(abs(r.preference_nats) for r in near) > 0.1


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
