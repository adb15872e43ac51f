"""Without interventions a run equals the model. With all heads ablated it equals the direct path.

With frozen patterns, every intervention is a difference of paths.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pathsum.behavior.induction import prefix_matching, repeat_losses
from pathsum.circuits.paths import all_paths, by_order, path_logits
from pathsum.interventions.run import HeadActivation, Place, Run
from pathsum.model.transformer import Transformer
from tests import handmade
from tests.model.built import NORMS, POSITIONS, build, config, sample

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


@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_reading_what_was_written_changes_nothing(positions: str, norm: str, smeared: bool) -> None:
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    clean = Run(model, tokens)
    for reader in "QKV":
        found = clean.patched_layer(1, {(reader, (0, 2)): clean.output((0, 2))})
        torch.testing.assert_close(torch.stack([a.output for a in found], 1), clean.trace.outputs[1])
        torch.testing.assert_close(torch.stack([a.pattern for a in found], 1), clean.trace.patterns[1])


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


def test_a_head_that_writes_nothing_has_no_edges() -> None:
    model, tokens = build(config(norm="rms")), sample()
    model.layers[0].W_O.data[2] = 0  # type: ignore[union-attr, operator]
    clean = Run(model, tokens)
    for reader in "QKV":
        found = clean.patched_layer(1, {(reader, (0, 2)): torch.zeros_like(clean.streams[0])})
        torch.testing.assert_close(torch.stack([a.output for a in found], 1), clean.trace.outputs[1])


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


def induction_model(d_vocab: int) -> Transformer:
    """Return ``handmade.induction_pair`` in a model whose first head attends one position back by its bias."""
    weights = handmade.induction_pair(d_vocab)
    cell = config().model_copy(update={"n_heads": 1, "d_head": d_vocab, "d_model": 2 * d_vocab, "n_ctx": 23})
    model = Transformer(cell, d_vocab, torch.Generator()).double().requires_grad_(False)
    model.W_E.copy_(weights.W_E)
    model.W_U.copy_(20 * weights.W_U)
    for layer, (head,) in zip(model.layers, weights.layers, strict=True):
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            getattr(layer, name)[0] = getattr(head, name)
    model.layers[0].bias[0, 1] = 50  # type: ignore[union-attr, index]
    return model


def test_induction_depends_on_the_key_edge_alone() -> None:
    """Elhage et al. 2021, "How Induction Heads Work": K-composition with the previous-token head, neither Q nor V."""
    block, d_vocab = 11, 29
    model, tokens = induction_model(d_vocab), handmade.repeated_tokens(3, 5, d_vocab, block)
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


def test_heads_that_are_not_there_and_edges_that_run_backwards_are_refused() -> None:
    model, tokens = build(config()), sample()
    clean = Run(model, tokens)
    with pytest.raises(ValueError, match=r"expected heads \(layer, head\) from \(0, 0\) to \(1, 2\), got \(1, 3\)"):
        clean.zero((1, 3))
    with pytest.raises(ValueError, match=r"expected a side of .* before 1, got 'K' and head \(1, 0\)"):
        clean.patch_edge((1, 0), (1, 1), "K", clean.streams[0])


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


def test_losses_are_of_the_next_tokens_or_of_those_given() -> None:
    clean = Run(build(config()), sample())
    log_p = clean.trace.logits.log_softmax(-1)
    expected = -log_p[:, :-1].gather(-1, clean.tokens[:, 1:, None])[..., 0]
    torch.testing.assert_close(clean.losses(), expected)
    given = -log_p[:, 3:7].gather(-1, clean.tokens[:, 3:7, None])[..., 0]
    torch.testing.assert_close(clean.losses(clean.tokens, slice(3, 7)), given)


def test_all_edges_into_a_head_leave_it_the_embedding_alone() -> None:
    """Without a norm, the head then does what it would do directly after the embedding."""
    model, tokens = build(config(2, "relative", "none", False)), sample()
    clean = Run(model, tokens)
    edges = {(reader, (0, h)): torch.zeros_like(clean.streams[0]) for reader in "QKV" for h in range(3)}
    pattern, output = model.attention(1).heads(model.embed(tokens))
    found = clean.patch_edges((1, 1), edges).replaced[1, 1]
    torch.testing.assert_close(found.pattern, pattern[:, 1], **CLOSE)
    torch.testing.assert_close(found.output, output[:, 1], **CLOSE)


@pytest.mark.parametrize("edge", [("Q", (1, 0)), ("R", (0, 0))])
def test_an_edge_from_the_same_layer_or_to_no_side_is_refused(edge: tuple[str, Place]) -> None:
    model, tokens = build(config()), sample()
    clean = Run(model, tokens)
    with pytest.raises(ValueError, match="expected a side of .* and a head of a layer before 1, got"):
        clean.patch_edges((1, 0), {edge: clean.streams[0]})


@pytest.mark.parametrize("place", [(-1, 0), (0, 9)])
def test_a_head_that_is_not_there_is_refused_by_every_intervention(place: Place) -> None:
    """Guards against layer −1, which Python would take for the last layer."""
    run = Run(build(config(2)), sample())
    for intervene in (
        lambda: run.patch_edge(place, (1, 0), "K", run.streams[0]),
        lambda: run.patch_edge((0, 0), place, "K", run.streams[0]),
        lambda: run.force_pattern(place, run.pattern((0, 0))),
        lambda: run.write(place, run.pattern((0, 0))),
        lambda: run.keeps_pattern(place),
        lambda: run.patched_layer(-1, {}),
        lambda: run.patched_layer(2, {}),
    ):
        with pytest.raises(ValueError, match=r"expected heads \(layer, head\) from \(0, 0\)"):
            intervene()


def test_a_second_intervention_on_a_head_is_refused() -> None:
    """It would undo the first in silence."""
    run = Run(build(config(2)), sample())
    patched = run.patch_edge((0, 0), (1, 0), "K", run.output((0, 0)).roll(1, 0))
    for again in (
        lambda: patched.patch_edge((0, 1), (1, 0), "Q", run.output((0, 1)).roll(1, 0)),
        lambda: run.zero((1, 0)).force_pattern((1, 0), run.pattern((1, 1))),
    ):
        with pytest.raises(ValueError, match=r"expected one intervention per head, got a second one on head \(1, 0\)"):
            again()
    assert set(patched.zero((1, 1)).replaced) == {(1, 0), (1, 1)}


def test_a_pattern_that_sees_the_future_or_is_no_number_is_refused() -> None:
    run = Run(build(config(2)), sample())
    n = run.tokens.shape[1]
    for pattern in (torch.diag(torch.ones(n - 1), 1), torch.full((n, n), torch.nan)):
        with pytest.raises(ValueError, match=r"head \(0, 1\): expected a pattern \(query × key\) of finite numbers"):
            run.force_pattern((0, 1), pattern)


def test_an_activation_of_another_shape_is_refused_and_not_broadcast() -> None:
    run = Run(build(config(2)), sample())
    n, write = run.tokens.shape[1], torch.zeros_like(run.streams[0])
    for pattern in (torch.zeros(1, n), torch.zeros(len(run.tokens) + 1, n, n)):
        with pytest.raises(ValueError, match=r"head \(0, 1\): expected a pattern of shape"):
            run.force_pattern((0, 1), pattern)
    for wrong in (write[:1], write[:, :1], write[..., :1]):
        with pytest.raises(ValueError, match="expected an activation of shape"):
            run.patch_heads({(0, 1): wrong})
        with pytest.raises(ValueError, match="expected an activation of shape"):
            run.patch_edge((0, 1), (1, 0), "K", wrong)
    with pytest.raises(ValueError, match="expected an activation of shape"):
        run.replace({(0, 1): HeadActivation(run.pattern((0, 1))[:1], write[:1])})
    for place in ((-1, 0), (0, -1), (9, 0)):
        for read in (run.pattern, run.output, run.mean_output):
            with pytest.raises(ValueError, match=r"expected heads \(layer, head\) from"):
                read(place)
    with pytest.raises(ValueError, match="targets: expected tokens from 0 to"):
        run.losses(torch.full_like(run.tokens, -100))


def test_the_last_position_has_a_loss_only_with_targets() -> None:
    run = Run(build(config(2)), sample())
    for at in (slice(None), slice(-1, None)):
        with pytest.raises(ValueError, match="expected positions before the last .* give targets"):
            run.losses(at=at)
        assert run.losses(run.tokens, at).isfinite().all()


def test_an_ablation_that_would_change_nothing_is_refused() -> None:
    """In a single window, the mean over windows and the write of another window are the head's own write."""
    model, tokens = build(config(2)), sample()
    one, several = Run(model, tokens[:1]), Run(model, tokens)
    for ablate in (
        lambda: one.mean((0, 0)),
        lambda: one.resample((0, 0)),
        lambda: several.resample((0, 0), shift=len(tokens)),
    ):
        with pytest.raises(ValueError, match="nothing would be ablated"):
            ablate()
