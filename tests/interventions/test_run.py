"""Without interventions a run equals the model. With all heads ablated it equals the direct path.

With frozen patterns, every intervention is a difference of paths.
"""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pathsum.behavior.induction import prefix_matching, repeat_losses
from pathsum.circuits.paths import all_paths, by_order, path_logits
from pathsum.interventions.run import HeadActivation, Place, Run
from tests import handmade
from tests.model.built import NORMS, POSITIONS, build, config, sample
from tests.random_models import BLOCK, D_VOCAB, seated

EVERY = list(itertools.product(POSITIONS, NORMS, (False, True)))
CLOSE = {"rtol": 0, "atol": 1e-10}  # float64; logits of some tens, over sums of hundreds of terms


def unchanged(clean: Run, place: Place) -> Run:
    """Replace the head by its own activation."""
    return clean.replace({place: HeadActivation(clean.pattern(place), clean.output(place))})


@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_no_intervention_is_the_model(positions: str, norm: str, smeared: bool) -> None:
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    clean = Run(model, tokens)
    for same in (clean, unchanged(clean, (0, 1)), unchanged(clean, (1, 2))):
        for run in (same, same.freeze_patterns()):
            torch.testing.assert_close(run.logits(), model(tokens), **CLOSE)
            for found, was in zip(run.patterns, clean.trace.patterns, strict=True):
                torch.testing.assert_close(torch.stack(found, 1), was)
    for side in "QKV":  # an edge that carries what was written changes nothing
        read = clean.patched_layer(1, {(side, (0, 2)): clean.output((0, 2))})
        torch.testing.assert_close(torch.stack([a.output for a in read], 1), clean.trace.outputs[1])
        torch.testing.assert_close(torch.stack([a.pattern for a in read], 1), clean.trace.patterns[1])


@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_losses_are_those_of_the_logits_under_every_intervention(
    positions: str, norm: str, smeared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the logits are computed, and wherever they are cut into chunks."""
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    monkeypatch.setattr("pathsum.interventions.run.CHUNK", 5)
    clean, even = Run(model, tokens), torch.ones(tokens.shape[1], tokens.shape[1]).tril().double()
    edges = [clean.patch_edge((0, 2), (1, 1), side, clean.output((0, 2)).roll(1, 0)) for side in "QKV"]
    forced = clean.force_pattern((1, 2), even / even.sum(-1, keepdim=True))
    changed = [*edges, forced, edges[1].zero((1, 0)), edges[2].zero((0, 0)), clean.mean((1, 1))]
    losses = [clean.losses()]
    for run in (run for one in changed for run in (one, one.freeze_patterns())):
        for at in (slice(None, -1), slice(3, -2)):
            expected = cross_entropy(run.logits(at).mT, tokens.roll(-1, 1)[:, at], reduction="none")
            torch.testing.assert_close(run.losses(at=at), expected, **CLOSE)
        losses.append(run.losses())
        for place in clean.places:
            if run.keeps_pattern(place):
                torch.testing.assert_close(run.patterns[place[0]][place[1]], clean.pattern(place))
    assert not any(edges[2].zero((0, 0)).keeps_pattern(place) for place in [(0, 0), (1, 0), (1, 1)])
    assert clean.keeps_pattern((1, 1))
    assert edges[0].keeps_pattern((1, 0))
    assert not edges[0].keeps_pattern((1, 1))
    assert all((found - losses[0]).abs().max() > 1e-3 for found in losses[1:])


@pytest.mark.parametrize("norm", NORMS)
def test_without_any_head_the_direct_path_is_left(norm: str) -> None:
    model, tokens = build(config(norm=norm)), sample()
    clean = Run(model, tokens)
    silent = clean.zero(*clean.places)
    bare = model.normalise(model.embed(tokens))[0] @ model.W_U.mT
    torch.testing.assert_close(silent.logits(), bare, **CLOSE)
    direct = path_logits(model.weights(), (), tokens, clean.trace.patterns, clean.trace.scales)
    torch.testing.assert_close(silent.freeze_patterns().logits(), direct, **CLOSE)


@pytest.mark.parametrize(("norm", "n_layers"), list(itertools.product(NORMS, (1, 2, 3))))
def test_with_frozen_patterns_a_silent_head_is_the_model_without_its_paths(norm: str, n_layers: int) -> None:
    model, tokens = build(config(n_layers, norm=norm)), sample()
    clean, weights = Run(model, tokens), model.weights()
    for place in clean.places:
        through = [p for p in all_paths(weights) if place in p]
        lost = sum(path_logits(weights, p, tokens, clean.trace.patterns, clean.trace.scales) for p in through)
        found = clean.zero(place).freeze_patterns().logits()
        torch.testing.assert_close(found, clean.trace.logits - lost, **CLOSE)


@pytest.mark.parametrize("norm", NORMS)
def test_a_head_that_does_not_read_another_s_output_as_value_loses_their_virtual_head(norm: str) -> None:
    model, tokens = build(config(norm=norm)), sample()
    clean = Run(model, tokens)
    without = clean.patch_edge((0, 2), (1, 1), "V", torch.zeros_like(clean.streams[0]))
    path = path_logits(model.weights(), ((0, 2), (1, 1)), tokens, clean.trace.patterns, clean.trace.scales)
    found = without.freeze_patterns().logits()
    torch.testing.assert_close(found, clean.trace.logits - path, **CLOSE)
    torch.testing.assert_close(without.patterns[1][1], clean.pattern((1, 1)))


@pytest.mark.parametrize("reader", ["Q", "K"])
def test_a_score_without_an_edge_lacks_what_the_early_head_adds_to_it(reader: str) -> None:
    """Computed with W_QK in full: x_qᵀ W_QK x_k + b[q − k], with the early head's write subtracted on one side."""
    model, tokens = build(config()), sample()
    clean, late = Run(model, tokens), model.weights().layers[1][1]
    x = clean.streams[1]
    without = x - clean.trace.outputs[0][:, 2]
    q, k = (without, x) if reader == "Q" else (x, without)
    scores = q @ late.W_QK.dense() @ k.mT + model.attention(1).position_scores(x.shape[1])[1]
    found = clean.patched_layer(1, {(reader, (0, 2)): torch.zeros_like(x)})[1]
    torch.testing.assert_close(found.pattern, scores.softmax(-1))
    torch.testing.assert_close(found.output, found.pattern @ x @ late.W_OV.dense().mT)
    assert (found.pattern - clean.trace.patterns[1][:, 1]).abs().max() > 0.01


@pytest.mark.parametrize(("norm", "n_layers"), list(itertools.product(NORMS, (0, 1, 2, 3))))
def test_order_by_order_the_paths_become_the_model(norm: str, n_layers: int) -> None:
    model, tokens = build(config(n_layers, norm=norm)), sample()
    clean = Run(model, tokens)
    found = [read @ model.W_U.mT for read in clean.order_by_order()]
    assert len(found) == n_layers + 1
    torch.testing.assert_close(found[-1], model(tokens), **CLOSE)
    if norm == "none":
        orders = by_order(model.weights(), tokens, clean.trace.patterns, clean.trace.scales)
        for so_far, up_to in zip(itertools.accumulate(orders), found, strict=True):
            torch.testing.assert_close(up_to, so_far, **CLOSE)


def test_later_patterns_move_when_computed_again_and_stay_when_frozen() -> None:
    model, tokens = build(config()), sample()
    clean = Run(model, tokens)
    again = clean.zero((0, 0))
    frozen = again.freeze_patterns()
    was = clean.trace.patterns[1]
    assert (torch.stack(again.patterns[1], 1) - was).abs().max() > 0.01
    torch.testing.assert_close(torch.stack(frozen.patterns[1], 1), was)
    assert (again.read - frozen.read).abs().max() > 0.01


def test_a_given_pattern_moves_what_it_attends_to() -> None:
    model, tokens = build(config()), sample()
    clean, head = Run(model, tokens), model.weights().layers[0][1]
    forced = clean.force_pattern((0, 1), handmade.previous_token_pattern(tokens.shape[1]))
    moved = clean.streams[0] @ head.W_OV.dense().mT
    torch.testing.assert_close(forced.replaced[0, 1].output[:, 1:], moved[:, :-1])


def test_induction_depends_on_the_key_edge_alone() -> None:
    """Elhage et al. 2021, "How Induction Heads Work": K-composition with the previous-token head, neither Q nor V."""
    model, tokens, block = seated(0, 0).double(), handmade.repeated_tokens(3, 5, D_VOCAB, BLOCK), BLOCK
    model.W_U.mul_(20)
    clean = Run(model, tokens)

    def second(run: Run) -> tuple[float, float]:
        matching = prefix_matching(run.patterns[1][0][:, None], block).item()
        return repeat_losses(run.logits(), tokens, block).second_nats, matching

    loss, matching = second(clean)
    assert matching > 0.999
    for reader, holds in (("Q", True), ("K", False), ("V", True)):
        found = second(clean.patch_edge((0, 0), (1, 0), reader, torch.zeros_like(clean.streams[0])))
        assert (found == pytest.approx((loss, matching), abs=1e-6)) is holds, reader
        assert holds or (found[0] > loss + 1 and found[1] < 0.2)
    ideal = clean.force_pattern((0, 0), handmade.previous_token_pattern(tokens.shape[1]))
    assert second(ideal) == pytest.approx((loss, matching), abs=1e-6)


def test_edges_patched_at_once_add_up_in_what_is_read() -> None:
    """Values are linear in their input, whose scale is kept, so two patched edges change them by the sum of both
    changes."""
    clean = Run(build(config(2, norm="rms")), sample())
    silent = torch.zeros_like(clean.streams[0])

    def change(*heads: int) -> Tensor:
        return clean.patched_layer(1, {("V", (0, h)): silent for h in heads})[2].output - clean.output((1, 2))

    torch.testing.assert_close(change(0, 1), change(0) + change(1), **CLOSE)
    torch.testing.assert_close(change(), 0 * silent, **CLOSE)


def test_ablated_heads_write_their_mean_or_another_window() -> None:
    clean = Run(build(config()), sample())
    for run, write in ((clean.mean((0, 1)), "mean"), (clean.resample((0, 1)), "other")):
        own = clean.output((0, 1))
        expected = own.mean(0).expand_as(own) if write == "mean" else own.flip(0)  # of two windows
        torch.testing.assert_close(run.replaced[0, 1].output, expected)
        assert (run.losses() - clean.losses()).abs().max() > 1e-3
        assert not clean.replaced


def test_all_edges_into_a_head_leave_it_the_embedding_alone() -> None:
    """Without a norm, the head then does what it would do directly after the embedding."""
    model, tokens = build(config(2, "relative", "none", False)), sample()
    clean = Run(model, tokens)
    edges = {(reader, (0, h)): torch.zeros_like(clean.streams[0]) for reader in "QKV" for h in range(3)}
    pattern, output = model.attention(1).heads(model.embed(tokens))
    found = clean.patch_edges((1, 1), edges).replaced[1, 1]
    torch.testing.assert_close(found.pattern, pattern[:, 1], **CLOSE)
    torch.testing.assert_close(found.output, output[:, 1], **CLOSE)


BACKWARDS = "expected a side of .* and a head of a layer before 1, got"
NOT_THERE = r"expected heads \(layer, head\) from \(0, 0\) to \(1, 2\), got"
TWICE = r"expected one intervention per head, got a second one on head \(1, 0\)"
NO_PATTERN = r"head \(0, 1\): expected a pattern \(query × key\) of finite numbers"
PATTERN_SHAPE = r"head \(0, 1\): expected a pattern of shape"
SHAPE = "expected an activation of shape"
NOTHING = "nothing would be ablated"
FIRST, OWN = (0, 0), (0, 1)
ABSENT = [(-1, 0), (0, -1), (0, 9), (9, 0)]  # Python would take layer −1 for the last one


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda run: run.patch_edges((1, 0), {("Q", (1, 0)): run.streams[0]}), BACKWARDS),
        (lambda run: run.patch_edges((1, 0), {("R", FIRST): run.streams[0]}), BACKWARDS),
        *((lambda run, head=head: run.patch_edge(head, (1, 0), "K", run.streams[0]), NOT_THERE) for head in ABSENT),
        *((lambda run, head=head: run.patch_edge(FIRST, head, "K", run.streams[0]), NOT_THERE) for head in ABSENT),
        *((lambda run, head=head: run.force_pattern(head, run.pattern(FIRST)), NOT_THERE) for head in ABSENT),
        *((lambda run, head=head: run.write(head, run.pattern(FIRST)), NOT_THERE) for head in ABSENT),
        *((lambda run, head=head: run.keeps_pattern(head), NOT_THERE) for head in ABSENT),
        *((lambda run, head=head: run.zero(head), NOT_THERE) for head in ABSENT),
        *((lambda run, head=head: run.mean_output(head), NOT_THERE) for head in ABSENT),
        *((lambda run, layer=layer: run.patched_layer(layer, {}), NOT_THERE) for layer in (-1, 2)),
        (lambda run: run.patch_edge(FIRST, (1, 0), "K", run.output(FIRST)).zero((1, 0)), TWICE),
        (lambda run: run.zero((1, 0)).force_pattern((1, 0), run.pattern((1, 1))), TWICE),
        (lambda run: run.force_pattern(OWN, run.pattern(FIRST)[0].mT), NO_PATTERN),
        (lambda run: run.force_pattern(OWN, run.pattern(FIRST) * torch.nan), NO_PATTERN),
        (lambda run: run.force_pattern(OWN, run.pattern(FIRST)[0, :1]), PATTERN_SHAPE),
        (lambda run: run.force_pattern(OWN, torch.cat([run.pattern(FIRST)] * 2)), PATTERN_SHAPE),
        (lambda run: run.patch_heads({OWN: run.streams[0][:1]}), SHAPE),
        (lambda run: run.patch_heads({OWN: run.streams[0][:, :1]}), SHAPE),
        (lambda run: run.patch_edge(OWN, (1, 0), "K", run.streams[0][..., :1]), SHAPE),
        (lambda run: run.replace({OWN: HeadActivation(run.pattern(OWN)[:1], run.streams[0][:1])}), SHAPE),
        (lambda run: run.losses(torch.full_like(run.tokens, -100)), "targets: expected tokens from 0 to"),
        *((lambda run, at=at: run.losses(at=at), "give targets") for at in (slice(None), slice(-1, None))),
        (lambda run: Run(run.model, run.tokens[:1]).mean(FIRST), NOTHING),
        (lambda run: Run(run.model, run.tokens[:1]).resample(FIRST), NOTHING),
        (lambda run: run.resample(FIRST, shift=len(run.tokens)), NOTHING),
    ],
)
def test_what_would_be_undone_or_broadcast_or_change_nothing_is_refused(
    refused: Callable[[Run], object], message: str
) -> None:
    run = Run(build(config(2)), sample())
    with pytest.raises(ValueError, match=message):
        refused(run)


def test_interventions_on_different_heads_are_combined_and_the_last_position_has_a_loss_with_targets() -> None:
    run = Run(build(config(2)), sample())
    assert set(run.zero((1, 0)).zero((1, 1)).replaced) == {(1, 0), (1, 1)}
    own = -run.trace.logits.log_softmax(-1).gather(-1, run.tokens[..., None])[..., 0]
    torch.testing.assert_close(run.losses(run.tokens, slice(3, None)), own[:, 3:])
