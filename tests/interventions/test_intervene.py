"""Interventions: none is the model, all are the direct path, and with frozen patterns each is a difference of paths."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from pathsum.circuits.paths import all_paths, by_order, path_logits
from pathsum.interventions.intervene import (
    Act,
    Outcome,
    Place,
    Recording,
    attending,
    carried,
    order_by_order,
    patch_edges,
    reading_otherwise,
    record,
    rerun,
)
from pathsum.model.transformer import Transformer
from pathsum.probes.induction import prefix_matching, repeat_losses
from tests import handmade
from tests.model.test_transformer import NORMS, POSITIONS, build, config, sample

EVERY = list(itertools.product(POSITIONS, NORMS, (False, True)))
CLOSE = {"rtol": 0, "atol": 1e-10}  # float64; logits of some tens, over sums of hundreds of terms


def logits(model: Transformer, outcome: Outcome) -> Tensor:
    return outcome.read @ model.W_U.mT


def act(clean: Recording, place: Place, output: Tensor | None = None) -> dict[Place, Act]:
    """The head's pattern as it was, its output ``output`` or else as it was."""
    layer, head = place
    was = clean.trace.outputs[layer][:, head]
    return {place: Act(clean.trace.patterns[layer][:, head], was if output is None else output)}


def silent(clean: Recording, place: Place) -> dict[Place, Act]:
    return act(clean, place, torch.zeros_like(clean.streams[0]))


def everywhere(clean: Recording) -> list[Place]:
    return [(layer, h) for layer, output in enumerate(clean.trace.outputs) for h in range(output.shape[1])]


@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_no_intervention_is_the_model(positions: str, norm: str, smeared: bool) -> None:
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    clean = record(model, tokens)
    for run in (rerun, carried):
        for acts in ({}, act(clean, (0, 1)), act(clean, (1, 2))):
            outcome = run(model, clean, acts)
            torch.testing.assert_close(logits(model, outcome), model(tokens), **CLOSE)
            for found, was in zip(outcome.patterns, clean.trace.patterns, strict=True):
                torch.testing.assert_close(torch.stack(found, 1), was)


@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_reading_what_was_written_changes_nothing(positions: str, norm: str, smeared: bool) -> None:
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    clean = record(model, tokens)
    for reader in "QKV":
        found = reading_otherwise(model, clean, 1, reader, (0, 2), clean.trace.outputs[0][:, 2])
        torch.testing.assert_close(torch.stack([a.output for a in found], 1), clean.trace.outputs[1])
        torch.testing.assert_close(torch.stack([a.pattern for a in found], 1), clean.trace.patterns[1])


@pytest.mark.parametrize("norm", NORMS)
def test_without_any_head_the_direct_path_is_left(norm: str) -> None:
    model, tokens = build(config(norm=norm)), sample()
    clean = record(model, tokens)
    silence = {place: a for p in everywhere(clean) for place, a in silent(clean, p).items()}
    bare = model.normalise(model.embed(tokens))[0] @ model.W_U.mT
    torch.testing.assert_close(logits(model, rerun(model, clean, silence)), bare, **CLOSE)
    direct = path_logits(model.weights(), (), tokens, clean.trace.patterns, clean.trace.scales)
    torch.testing.assert_close(logits(model, carried(model, clean, silence)), direct, **CLOSE)


@pytest.mark.parametrize(("norm", "n_layers"), list(itertools.product(NORMS, (1, 2, 3))))
def test_with_frozen_patterns_a_silent_head_is_the_model_without_its_paths(norm: str, n_layers: int) -> None:
    model, tokens = build(config(n_layers, norm=norm)), sample()
    clean, weights = record(model, tokens), model.weights()
    for place in everywhere(clean):
        through = [p for p in all_paths(weights) if place in p]
        lost = sum(path_logits(weights, p, tokens, clean.trace.patterns, clean.trace.scales) for p in through)
        found = logits(model, carried(model, clean, silent(clean, place)))
        torch.testing.assert_close(found, clean.trace.logits - lost, **CLOSE)


@pytest.mark.parametrize("norm", NORMS)
def test_a_head_that_does_not_read_another_s_output_as_value_loses_their_virtual_head(norm: str) -> None:
    model, tokens = build(config(norm=norm)), sample()
    clean = record(model, tokens)
    instead = reading_otherwise(model, clean, 1, "V", (0, 2), torch.zeros_like(clean.streams[0]))[1]
    path = path_logits(model.weights(), ((0, 2), (1, 1)), tokens, clean.trace.patterns, clean.trace.scales)
    found = logits(model, carried(model, clean, {(1, 1): instead}))
    torch.testing.assert_close(found, clean.trace.logits - path, **CLOSE)
    torch.testing.assert_close(instead.pattern, clean.trace.patterns[1][:, 1])


@pytest.mark.parametrize("reader", ["Q", "K"])
def test_a_score_without_an_edge_lacks_what_the_early_head_adds_to_it(reader: str) -> None:
    """By W_QK in full: x_qᵀ W_QK x_k + b[q − k], with y taken from one side."""
    model, tokens = build(config()), sample()
    clean, late = record(model, tokens), model.weights().layers[1][1]
    x = clean.streams[1]
    without = x - clean.trace.outputs[0][:, 2]
    q, k = (without, x) if reader == "Q" else (x, without)
    scores = q @ late.W_QK.dense() @ k.mT + model.layers[1].position_scores(x.shape[1])[1]  # type: ignore[operator]
    found = reading_otherwise(model, clean, 1, reader, (0, 2), torch.zeros_like(x))[1]
    torch.testing.assert_close(found.pattern, scores.softmax(-1))
    torch.testing.assert_close(found.output, found.pattern @ x @ late.W_OV.dense().mT)
    assert (found.pattern - clean.trace.patterns[1][:, 1]).abs().max() > 0.01


def test_a_head_that_writes_nothing_has_no_edges() -> None:
    model, tokens = build(config(norm="rms")), sample()
    model.layers[0].W_O.data[2] = 0  # type: ignore[union-attr, operator]
    clean = record(model, tokens)
    for reader in "QKV":
        found = reading_otherwise(model, clean, 1, reader, (0, 2), torch.zeros_like(clean.streams[0]))
        torch.testing.assert_close(torch.stack([a.output for a in found], 1), clean.trace.outputs[1])


@pytest.mark.parametrize(("norm", "n_layers"), list(itertools.product(NORMS, (0, 1, 2, 3))))
def test_order_by_order_the_paths_become_the_model(norm: str, n_layers: int) -> None:
    model, tokens = build(config(n_layers, norm=norm)), sample()
    clean = record(model, tokens)
    found = [read @ model.W_U.mT for read in order_by_order(model, clean)]
    assert len(found) == n_layers + 1
    torch.testing.assert_close(found[-1], model(tokens), **CLOSE)
    if norm == "none":
        orders = by_order(model.weights(), tokens, clean.trace.patterns, clean.trace.scales)
        for so_far, up_to in zip(itertools.accumulate(orders), found, strict=True):
            torch.testing.assert_close(up_to, so_far, **CLOSE)


def test_later_patterns_move_when_computed_again_and_stay_when_frozen() -> None:
    model, tokens = build(config()), sample()
    clean = record(model, tokens)
    again, frozen = (run(model, clean, silent(clean, (0, 0))) for run in (rerun, carried))
    was = clean.trace.patterns[1]
    assert (torch.stack(again.patterns[1], 1) - was).abs().max() > 0.01
    torch.testing.assert_close(torch.stack(frozen.patterns[1], 1), was)
    assert (again.read - frozen.read).abs().max() > 0.01


def test_a_given_pattern_moves_what_it_attends_to() -> None:
    model, tokens = build(config()), sample()
    clean, head = record(model, tokens), model.weights().layers[0][1]
    found = attending(model, clean, (0, 1), handmade.previous_token_pattern(tokens.shape[1]))
    moved = clean.streams[0] @ head.W_OV.dense().mT
    torch.testing.assert_close(found.output[:, 1:], moved[:, :-1])


def induction_model(d_vocab: int) -> Transformer:
    """handmade.induction_pair, whose first head looks one back by its position bias."""
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


def test_induction_hangs_on_the_key_edge_alone() -> None:
    """AMF "how induction heads work": K-composition with the previous-token head, neither Q nor V."""
    block, d_vocab = 11, 29
    model, tokens = induction_model(d_vocab), handmade.repeated_tokens(3, 5, d_vocab, block)
    clean = record(model, tokens)

    def second(acts: dict[Place, Act]) -> tuple[float, float]:
        outcome = rerun(model, clean, acts)
        matching = prefix_matching(outcome.patterns[1][0][:, None], block).item()
        return repeat_losses(logits(model, outcome), tokens, block).second_nats, matching

    loss, matching = second({})
    assert matching > 0.999
    for reader, holds in (("Q", True), ("K", False), ("V", True)):
        (instead,) = reading_otherwise(model, clean, 1, reader, (0, 0), torch.zeros_like(clean.streams[0]))
        found = second({(1, 0): instead})
        assert (found == pytest.approx((loss, matching), abs=1e-6)) is holds, reader
        assert holds or (found[0] > loss + 1 and found[1] < 0.2)
    ideal = attending(model, clean, (0, 0), handmade.previous_token_pattern(tokens.shape[1]))
    assert second({(0, 0): ideal}) == pytest.approx((loss, matching), abs=1e-6)


def test_heads_that_are_not_there_and_edges_that_run_backwards_are_refused() -> None:
    model, tokens = build(config()), sample()
    clean = record(model, tokens)
    with pytest.raises(ValueError, match=r"expected heads \(layer, head\) from \(0, 0\) to \(1, 2\), got \(1, 3\)"):
        rerun(model, clean, {(1, 3): act(clean, (1, 2))[1, 2]})
    with pytest.raises(ValueError, match=r"expected a reader of .* before 1, got 'K' and head \(1, 0\)"):
        reading_otherwise(model, clean, 1, "K", (1, 0), clean.streams[0])


@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_several_edges_patched_at_once_are_each_alone_where_there_is_one(
    positions: str, norm: str, smeared: bool
) -> None:
    """Identity with ``reading_otherwise``, and no edge is the head as it is."""
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    clean, silent = record(model, tokens), torch.zeros_like(record(model, tokens).streams[0])
    for reader in "QKV":
        one = patch_edges(model, clean, (1, 2), {(reader, (0, 1)): silent})
        other = reading_otherwise(model, clean, 1, reader, (0, 1), silent)[2]
        torch.testing.assert_close(one.pattern, other.pattern, **CLOSE)
        torch.testing.assert_close(one.output, other.output, **CLOSE)
    as_it_was = patch_edges(model, clean, (1, 2), {})
    torch.testing.assert_close(as_it_was.output, clean.trace.outputs[1][:, 2], **CLOSE)


def test_all_edges_into_a_head_leave_it_the_embedding_alone() -> None:
    """Without a norm the head then is what it would be right after the embedding."""
    model, tokens = build(config(2, "relative", "none", False)), sample()
    clean = record(model, tokens)
    edges = {(reader, (0, h)): torch.zeros_like(clean.streams[0]) for reader in "QKV" for h in range(3)}
    pattern, output = model.layers[1].heads(model.embed(tokens))  # type: ignore[operator]
    found = patch_edges(model, clean, (1, 1), edges)
    torch.testing.assert_close(found.pattern, pattern[:, 1], **CLOSE)
    torch.testing.assert_close(found.output, output[:, 1], **CLOSE)


@pytest.mark.parametrize("edge", [("Q", (1, 0)), ("R", (0, 0))])
def test_an_edge_from_the_same_layer_or_of_no_reader_is_refused(edge: tuple[str, Place]) -> None:
    model, tokens = build(config()), sample()
    clean = record(model, tokens)
    with pytest.raises(ValueError, match="expected a reader of .* and a head before layer 1, got"):
        patch_edges(model, clean, (1, 0), {edge: clean.streams[0]})
