"""Heads that match one token and heads that match two tokens are distinguished by behavior and by intervention."""

import dataclasses
import functools
import math
from typing import Any

import pytest
import torch

from pathsum.behavior.suffix_sequences import Trials, draw_trials
from pathsum.config import ExtractConfig, ModelConfig
from pathsum.extraction import sufficiency, suffixes
from pathsum.extraction.circuit import Roles
from pathsum.extraction.inputs import EvalData, TrainedModel, trace_trained
from pathsum.extraction.suffixes import CONDITIONS, METHODS, cuts, tables
from pathsum.model.transformer import Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.records.sufficiency import Kept
from pathsum.records.suffixes import CONTROLS_OF, Cut, SuffixCutRow, SuffixMatchRow
from tests import handmade
from tests.extraction.small import plain_text
from tests.random_models import HOW as FEW
from tests.random_models import cell_of, loaded

D_VOCAB, N_CTX = 41, 23
HOW = ExtractConfig(**{**FEW.model_dump(), "repeated_windows": 7})


def evidence() -> EvalData:
    g = torch.Generator().manual_seed(1)
    windows = torch.randint(1, D_VOCAB, (11, N_CTX + 1), generator=g)
    windows[:, 0] = 0
    return plain_text(windows, ["w"] * D_VOCAB)


def evaluation(layers: int, heads: int) -> Evaluation:
    """Return the last evaluation of training, whose scores select the first head of each layer."""
    scores = [[0.9, *[0.1] * (heads - 1)] for _ in range(layers)]
    return Evaluation(9, 9, 1.0, 0.1, 9.0, 1.0, scores, scores, scores, [1.0])


def trained(model: Transformer) -> TrainedModel:
    config = model.config
    return trace_trained(model, cell_of(model), [evaluation(config.n_layers, config.n_heads)], evidence(), HOW)


def blank(n_layers: int = 2, n_heads: int = 3, d_model: int = 3 * D_VOCAB, n_ctx: int = N_CTX) -> Transformer:
    config = ModelConfig(
        n_layers=n_layers, n_heads=n_heads, d_head=2 * D_VOCAB, d_model=d_model, n_ctx=n_ctx, positions="relative",
        norm="none", smeared_keys=False, embedding_std=1.0,
    )  # fmt: skip
    return Transformer(config, D_VOCAB, torch.Generator().manual_seed(2)).requires_grad_(False)


def matcher(current: float, previous: float) -> TrainedModel:
    model = loaded(blank(), handmade.suffix_matcher(D_VOCAB, current, previous).to(torch.float32))
    model.layers[0].bias[0, 1] = model.layers[0].bias[1, 2] = 40.0  # type: ignore[index, operator]
    return trained(model)


@functools.cache
def records(current: float, previous: float) -> dict[str, list[Any]]:
    return tables(matcher(current, previous), evidence(), HOW)


def matches(strengths: tuple[float, float]) -> dict[str, SuffixMatchRow]:
    """Return the results of the induction head, by condition."""
    return {r.condition: r for r in records(*strengths)["suffix_matches"] if (r.layer, r.head) == (1, 0)}


def ablated(strengths: tuple[float, float]) -> dict[tuple[str, str], SuffixCutRow]:
    """Return suffix matching by set of edges and method, with the first of several rotations."""
    return {(r.cut, r.method): r for r in records(*strengths)["suffix_cuts"] if not r.rotation}


ONE, TWO = (5.0, 0.0), (4.0, 3.0)  # nats for the current token and for the one before


def test_a_one_token_matcher_prefers_neither_occurrence() -> None:
    """Negative control, exact: both followers come after the current token, and the head compares nothing else."""
    rows = matches(ONE)
    assert set(rows) == set(CONDITIONS)
    shared = math.exp(5) / (2 * math.exp(5) + N_CTX - 2)
    alone = math.exp(5) / (math.exp(5) + N_CTX - 1)
    for name in ("two against one", "three against two"):
        assert rows[name].advantage == pytest.approx(0, abs=1e-6)
        assert rows[name].longer == rows[name].shorter == pytest.approx(shared, rel=1e-4)
    for name in ("one alone", "two alone", "three alone"):
        assert rows[name].longer == pytest.approx(alone, rel=1e-4)
    assert rows["previous only"].longer < rows["previous only"].chance == 1 / N_CTX


def test_a_two_token_matcher_prefers_the_longer_match_by_the_softmax_of_its_scores() -> None:
    rows, rest = matches(TWO), N_CTX - 2
    expected = (math.exp(7) - math.exp(4)) / (math.exp(7) + math.exp(4) + rest)
    assert rows["two against one"].advantage == pytest.approx(expected, rel=1e-4)
    assert rows["two against one"].low == pytest.approx(expected, rel=1e-4)
    assert rows["three against two"].advantage == pytest.approx(0, abs=1e-6)
    assert rows["previous only"].longer == pytest.approx(math.exp(3) / (math.exp(3) + rest + 1), rel=1e-4)


def test_the_longer_match_s_follower_is_predicted_and_a_one_token_matcher_cannot_choose() -> None:
    two, one = ({r.condition: r for r in records(*s)["suffix_predictions"]}["two against one"] for s in (TWO, ONE))
    assert two.wins == 1
    assert two.low > 0.5
    assert one.advantage_nats == pytest.approx(0, abs=1e-5)
    assert one.longer_nats > 0.3


def test_random_heads_prefer_nothing() -> None:
    """Negative control: the advantage is 0 within 4 standard errors for every head and condition."""
    model = blank()
    for layer in model.layers:
        layer.W_O.copy_(torch.randn(layer.W_O.shape, generator=torch.Generator().manual_seed(3)) / 20)
    rows = tables(trained(model), evidence(), HOW)["suffix_matches"]
    assert len(rows) == 2 * 3 * len(CONDITIONS)
    assert all(abs(r.advantage) < 2.1 * (r.high - r.low) / 2 + 1e-9 for r in rows)
    assert all(abs(r.longer - r.chance) < 0.05 for r in rows)


@pytest.mark.parametrize("method", METHODS)
def test_without_the_query_or_the_key_edge_the_preference_is_gone_and_one_token_matching_stays(method: str) -> None:
    rows = ablated(TWO)
    clean = rows["none", ""]
    assert clean.advantage > 0.85
    for cut in (Cut.QUERY_EDGE, Cut.KEY_EDGE, Cut.ALL_QUERIES, Cut.BUT_ONE_TOKEN):
        assert abs(rows[cut, method].advantage) < 0.1
        assert rows[cut, method].alone > 0.5 * clean.alone
    for control, edges in ((Cut.QUERY_OTHERS, "Q←L0H2"), (Cut.KEY_OTHERS, "K←L0H2")):
        row = rows[control, method]
        assert (row.advantage, row.edges) == (pytest.approx(clean.advantage, abs=1e-6), edges)
    assert rows[Cut.PREVIOUS_KEYS, method].alone < 0.1
    assert rows[Cut.PREVIOUS_KEYS, method].second_copy_low > 0.2


@pytest.mark.parametrize("method", METHODS)
def test_each_control_has_as_many_edges_and_leaves_more_of_the_advantage(method: str) -> None:
    rows = ablated(TWO)
    for cut, controls in CONTROLS_OF.items():
        for control in controls:
            row, of = rows[control, method], rows[cut, method]
            assert len(row.edges.split()) == len(of.edges.split())
            assert row.spared == pytest.approx(row.advantage - of.advantage, abs=1e-6)
            assert row.spared_low is not None
            assert row.spared_low > 0.3
    assert all(r.spared is None for (cut, _), r in rows.items() if not cut.startswith("control"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cut", [Cut.QUERY_RANDOM, Cut.KEY_RANDOM])
def test_every_rotation_is_a_control_of_its_own(cut: Cut, method: str) -> None:
    """Guards against a verdict that one random rotation decides."""
    rows = [r for r in records(*TWO)["suffix_cuts"] if (r.cut, r.method) == (cut, method)]
    assert [r.rotation for r in rows] == [0, 1, 2, 3]
    assert len({round(r.advantage, 9) for r in rows}) == 4
    assert all(r.spared is not None for r in rows)
    others = [r for r in records(*TWO)["suffix_cuts"] if r.cut not in (Cut.QUERY_RANDOM, Cut.KEY_RANDOM)]
    assert {r.rotation for r in others} == {None}


def misnamed() -> TrainedModel:
    """Return a two-token matcher whose log names the silent head as its previous-token head."""
    found = matcher(*TWO)
    last = dataclasses.replace(found.log[-1], previous_token=[[0.1, 0.1, 0.9], [0.0, 0.0, 0.0]])
    return dataclasses.replace(found, log=[last])


def test_where_another_head_carries_the_match_the_control_leaves_less() -> None:
    """Negative control: the silent head is cut, and the head that moves the previous token is the control."""
    rows = {(r.cut, r.method): r for r in tables(misnamed(), evidence(), HOW)["suffix_cuts"]}
    assert rows[Cut.QUERY_OTHERS, "resample"].edges == "Q←L0H0"
    assert rows[Cut.QUERY_EDGE, "resample"].left == pytest.approx(1, abs=1e-6)
    high = rows[Cut.QUERY_OTHERS, "resample"].spared_high
    assert high is not None
    assert high < -0.3


def test_controls_are_chosen_on_other_sequences_than_they_are_judged_on(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[set[tuple[int, ...]]] = []

    def recorded(*given: Any) -> Trials:
        found = draw_trials(*given)
        drawn.append({tuple(window) for window in found.tokens.tolist()})
        return found

    monkeypatch.setattr(suffixes, "draw_trials", recorded)
    tables(matcher(*TWO), evidence(), HOW)
    judged, chosen = drawn
    assert len(judged) == len(chosen) == suffixes.SEQUENCES
    assert not judged & chosen


def test_the_edges_of_a_two_token_matcher_are_worth_something_on_repeats_and_those_of_the_other_nothing() -> None:
    two, one = ablated(TWO), ablated(ONE)
    assert two[Cut.KEY_EDGE, "mean"].second_copy_low > 0.01
    assert one[Cut.KEY_EDGE, "mean"].second_copy_nats == pytest.approx(0, abs=1e-6)
    joint, single = (two[cut, "resample"].second_copy_nats for cut in (Cut.BUT_ONE_TOKEN, Cut.ALL_QUERIES))
    assert joint > 0.5 * single  # queries and keys of one other window would match each other, at the right place
    assert two["none", ""].second_copy_nats == one["none", ""].second_copy_nats == 0


def test_the_two_back_head_is_another_than_the_previous_token_head_and_every_cut_has_edges() -> None:
    roles = Roles.of(matcher(*TWO))
    assert roles == Roles((1, 0), ((0, 0),), ((0, 1),), ((1, 0), (1, 1), (1, 2)))
    none: dict[str, list[tuple[int, int]]] = {"Q": [], "K": []}
    without, heads = set(cuts(roles, none)), set(cuts(roles, {"Q": [(0, 2)], "K": [(0, 2)]}))
    assert heads == set(Cut)
    assert heads - without == {Cut.QUERY_OTHERS, Cut.KEY_OTHERS}
    alone = Roles((1, 0), ((0, 0),), (), ((1, 0),))
    assert alone == Roles.of(trained(blank(n_heads=1)))
    assert set(cuts(alone, none)) == {
        Cut.NONE, Cut.QUERY_EDGE, Cut.ALL_QUERIES, Cut.BUT_ONE_TOKEN, Cut.PREVIOUS_KEYS, Cut.QUERY_RANDOM
    }  # fmt: skip


@pytest.mark.parametrize(("n_layers", "counts"), [(0, (0, 0, 0)), (1, (18, 6, 0))])
def test_one_layer_has_no_edges_and_none_no_rows(n_layers: int, counts: tuple[int, ...]) -> None:
    found = tables(trained(blank(n_layers=n_layers)), evidence(), HOW)
    assert tuple(map(len, found.values())) == counts


def left(current: float, previous: float) -> dict[Kept, float]:
    """Return the share of prefix matching that is left, by what is kept."""
    last = dataclasses.replace(evaluation(2, 3), prefix_matching=[[0.0] * 3, [0.9, 0.0, 0.0]])
    shown = dataclasses.replace(matcher(current, previous), log=[last])
    return {Kept(r.kept): r.matching_share for r in sufficiency.tables(shown, evidence(), HOW)["sufficiency"]}


def test_the_circuit_suffices_for_either_matcher_and_the_minimal_circuit_for_one_token_alone() -> None:
    one, two = left(30.0, 0.0), left(0.0, 30.0)
    for shares in (one, two):
        assert shares[Kept.CIRCUIT] == pytest.approx(1, abs=1e-5)
        assert shares[Kept.PREFERENCE] == pytest.approx(1, abs=1e-5)
        assert max(shares[k] for k in (Kept.NO_PREVIOUS, Kept.NEITHER, Kept.ANOTHER, Kept.NOTHING)) < 0.3
    assert min(one[k] for k in (Kept.MINIMAL, Kept.KEY, Kept.KEYS, Kept.NO_TWO_BACK)) > 0.9
    assert max(two[k] for k in (Kept.MINIMAL, Kept.KEY, Kept.KEYS, Kept.NO_TWO_BACK)) < 0.3
    assert one[Kept.NO_KEYS] < 0.3
    assert two[Kept.NO_KEYS] == pytest.approx(1, abs=1e-5)  # this head compares previous tokens only


def test_what_is_left_without_an_edge_is_a_share_with_the_error_of_both_means() -> None:
    two, one = ablated(TWO), ablated(ONE)
    assert (two["none", ""].left, two["none", ""].left_low, two["none", ""].left_high) == pytest.approx((1, 1, 1))
    for (cut, method), r in two.items():
        assert None not in (r.left, r.left_low, r.left_high)
        assert r.left == pytest.approx(r.advantage / two["none", ""].advantage, abs=1e-6), (cut, method)
        assert r.left_low - 1e-9 <= r.left <= r.left_high + 1e-9  # type: ignore[operator]
    assert two[Cut.KEY_EDGE, "mean"].left == pytest.approx(0, abs=0.05)
    assert all(r.left is None for r in one.values())
    assert one["none", ""].alone_left == pytest.approx(1)
