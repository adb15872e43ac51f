"""Training curves of single windows average to those of the log, and have change-points only where something forms."""

import math
from dataclasses import replace

import pytest
import torch

from pathsum.behavior.icl_positions import icl_positions
from pathsum.behavior.loss_drops import loss_drops
from pathsum.circuits.composition import composition
from pathsum.extraction import formation
from pathsum.extraction.inputs import trace_trained
from pathsum.records.formation import around_onset
from pathsum.training.evaluate import evaluate, token_losses
from tests.extraction.small import HOW, evidence, learnt, taken_apart
from tests.training.small import MODEL

SEEN = evidence()


@pytest.mark.parametrize(("n_layers", "norm"), [(0, "none"), (1, "rms"), (2, "layer")])
def test_the_curves_are_those_of_the_evaluation(n_layers: int, norm: str) -> None:
    trained, found = learnt(n_layers=n_layers, norm=norm), taken_apart(n_layers=n_layers, norm=norm).tables
    model = trained.model
    assert [r.step for r in found["formation"]] == [e.step for e in trained.log if e.step == 0 or e.step >= 2]
    last = found["formation"][-1]
    again = evaluate(model, SEEN.windows, trained.repeated_tokens, trained.block, 0, 0)
    assert last.loss_nats == pytest.approx(again.val_loss_nats, rel=1e-5)
    assert last.loss_drop_nats == pytest.approx(again.in_context_loss_drop_nats, abs=1e-5)
    for r in found["formation"]:
        assert r.loss_drop_low is not None
        assert r.loss_drop_high is not None
        assert r.loss_drop_low < r.loss_drop_nats < r.loss_drop_high
    if not n_layers:
        assert last.previous_token is last.prefix_matching is last.k_composition is None
        return
    pair = formation.final_pair(trained)
    assert pair is not None
    previous, (layer, head) = pair
    assert last.previous_token == pytest.approx(again.previous_token[0][previous], abs=1e-6)
    assert last.prefix_matching == pytest.approx(again.prefix_matching[layer][head], abs=1e-6)
    assert (last.k_composition is None) == (layer == 0)
    if layer:
        weights = model.weights().to(torch.float64)  # in float32, the sixth digit depends on the processor
        score = composition(weights.layers[0][previous], weights.layers[1][head], "K")
        assert last.k_composition == pytest.approx(score * math.sqrt(MODEL.d_model) - 1, rel=1e-11)


def test_single_losses_average_to_the_logged_loss_from_a_twentieth_of_the_training_on() -> None:
    rows, shown = taken_apart().tables["token_losses"], SEEN.windows[: formation.TRAJECTORY_WINDOWS]
    assert [r.step for r in rows] == [e.step for e in learnt().log if e.step >= 2]
    last = token_losses(learnt().model, shown).mean().item()
    assert sum(rows[-1].losses_nats) / shown[:, 1:].numel() == pytest.approx(last, rel=1e-5)


def test_around_the_onset_loss_drops_are_measured_on_all_windows_and_beyond_those_of_bigrams() -> None:
    """The final model stands for the bigram model, so nothing is left of its own drop, on any number of windows."""
    final = learnt()
    checkpoints, log, cell, model = final.checkpoints, final.log, final.cell, final.model
    losses = token_losses(model, SEEN.held_out)
    seen = replace(SEEN, bigram_losses=losses)
    scores = [[[0.0] * 2, [0.0, 0.01 if i < 2 else 0.9]] for i in range(len(log))]
    formed = [replace(e, prefix_matching=s, tokens_seen=1000 + e.tokens_seen) for e, s in zip(log, scores, strict=True)]
    assert around_onset(formed) == (1, 2)
    found = formation.tables(trace_trained(model, cell, formed, seen, HOW, checkpoints), seen, HOW)["formation"]
    around, all_windows = {formed[1].step, formed[2].step}, len(seen.held_out)
    assert around < {r.step for r in found}
    few = len(SEEN.windows[: formation.TEXT])
    assert few < all_windows
    assert all(r.windows == (all_windows if r.step in around else few) for r in found)
    assert found[-1].loss_drop_nats == pytest.approx(0, abs=1e-6)
    assert (found[-1].loss_drop_low, found[-1].loss_drop_high) == pytest.approx((0, 0), abs=1e-6)
    before = checkpoints[1]()
    (row,) = (r for r in found if r.step == formed[1].step)
    by_hand = loss_drops(token_losses(before, SEEN.held_out)) - loss_drops(losses)
    assert row.loss_drop_nats == pytest.approx(by_hand.mean().item(), abs=1e-6)
    unformed = formation.tables(trace_trained(model, cell, log, seen, HOW, checkpoints), seen, HOW)["formation"]
    assert {r.windows for r in unformed} == {few}


def test_the_drop_at_the_positions_of_icl_is_only_that_of_all_windows() -> None:
    losses = torch.rand(40, 100, generator=generator(), dtype=torch.float64)
    losses[32:, 50:] += 1.0
    windows = torch.zeros(40, 101, dtype=torch.int64)
    text = {"held_out": windows, "windows": windows, "tuning": windows, "documents": torch.arange(40)}
    data = replace(SEEN, **text, bigram_losses=losses)
    every, few = (formation.drop_columns(losses[:n], data) for n in (40, 32))
    by_hand = losses[:, 44:55].mean() - losses[:, 84:95].mean()
    assert icl_positions(100) == (50, 90)
    assert every["icl_loss_drop_nats"] == pytest.approx(by_hand.item(), abs=1e-12)
    assert few["icl_loss_drop_nats"] is None


def test_in_a_long_training_checkpoints_settle_where_the_loss_falls_below_that_of_bigrams() -> None:
    losses = (3.0, 2.5, 2.6, 1.0, 0.9)
    tokens = (0, 100, 200, 20_000, 400_000)  # 5 %: from the fourth on
    first = learnt().log[0]
    curve = [replace(first, tokens_seen=t, val_loss_nats=v) for t, v in zip(tokens, losses, strict=True)]

    def settled(bigram_loss: float | None) -> list[int]:
        return replace(learnt(), log=curve, bigram_loss=bigram_loss).settled

    assert settled(None) == settled(0.5) == settled(0.95) == [3, 4]
    assert settled(2.55) == [1, 2, 3, 4]
    assert settled(2.5) == [3, 4]
    assert replace(learnt(), log=[]).settled == []


def test_a_curve_that_rises_in_every_window_changes_and_noise_does_not() -> None:
    tokens = list(range(0, 2001, 100))
    t = torch.tensor(tokens, dtype=torch.float64)[:, None]
    noise = 0.02 * torch.randn(len(tokens), 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    own = torch.arange(7)
    found = formation.change("prefix_matching", tokens, torch.sigmoid((t - 1030) / 50) + noise, own, generator())
    assert found is not None
    assert (found.low, found.high, found.windows) == (1000, 1100, 7)
    assert found.low_documents is not None
    assert found.high_documents is not None
    assert 980 < found.low_documents <= found.tokens_seen <= found.high_documents < 1080
    for name in formation.CHANGES:
        assert formation.change(name, tokens, noise, own, generator()) is None


def test_composition_has_no_documents_to_draw() -> None:
    tokens = [0, 10, 20]
    curve = torch.tensor([[0.0], [0.1], [0.8]])
    found = formation.change("k_composition", tokens, curve, torch.arange(1), generator())
    assert found is not None
    assert (found.low, found.high) == (10, 20)
    assert found.low_documents is found.high_documents is found.windows is None


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
