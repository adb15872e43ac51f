"""Joint ablation in chunks, by several rotations, as a paired share of the loss drop beyond the bigram model's."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from pathsum.behavior.loss_drops import loss_drops
from pathsum.extraction import joint_ablation
from pathsum.extraction.inputs import EvalData, trace_trained
from pathsum.extraction.joint_ablation import ROTATIONS, WHOLE, Trial, text_drops, trials
from pathsum.model.transformer import Transformer
from pathsum.records.ablations import CONTROL, INDUCTION, JointAblationRow
from pathsum.statistics.rotation import random_rotation
from pathsum.training.evaluate import token_losses
from tests import handmade
from tests.random_models import D_VOCAB, HOW, LOG, cell_of, evidence, random_model, seated

HEAD, OTHER = (1, 1), (1, 0)  # the induction head, and a head that writes nothing
SCORES = [[0.0] * 3, [0.0, 1.0, 0.0]]
LAST = replace(LOG[-1], previous_token=[[0.0, 0.0, 1.0], [0.0] * 3], prefix_matching=SCORES)


def silenced(model: Transformer) -> Transformer:
    """Return the model without its induction head, which is a bigram model."""
    without = copy.deepcopy(model)
    without.layers[HEAD[0]].W_O[HEAD[1]] = 0  # type: ignore[union-attr, index]
    return without


def circuit() -> tuple[Transformer, EvalData]:
    """Return an induction model whose direct path is a random table of bigrams, and repeated tokens as its text."""
    model, g = seated(2, HEAD[1]).double(), torch.Generator().manual_seed(1)
    model.W_U.add_(0.5 * handmade.normal(g, *model.W_U.shape))
    windows = handmade.repeated_tokens(3, 29, D_VOCAB, 11)
    windows = torch.cat([windows, windows[:, 1:2]], 1)
    text = {"held_out": windows, "documents": torch.arange(29), "windows": windows[:5]}
    return model, replace(evidence(), **text, bigram_losses=token_losses(silenced(model), windows))


def measured(model: Transformer, data: EvalData, tried: Sequence[Trial], n: int = 256) -> list[JointAblationRow]:
    trained = trace_trained(model, cell_of(model), [LAST], data, HOW)
    return joint_ablation.checkpoint_rows(model, LAST, trained, data, tried, n)


def test_the_share_is_of_what_the_bigram_model_does_not_drop() -> None:
    """Without its induction head the model is the bigram model, so all of its drop beyond that model's is lost."""
    model, data = circuit()
    zero, silent = measured(model, data, [Trial(INDUCTION, [HEAD], "zero"), Trial(INDUCTION, [OTHER], "mean")])
    assert (zero.share, zero.share_low, zero.share_high) == pytest.approx((1, 1, 1), abs=1e-9)
    assert zero.loss_drop_nats == pytest.approx(zero.loss_drop_lost, abs=1e-9)
    assert data.bigram_drops.abs().mean() > 0.3
    assert silent.share == pytest.approx(0, abs=1e-9)
    assert zero.windows == len(data.held_out) > len(data.windows)


def test_a_model_that_uses_no_context_has_no_share() -> None:
    model, data = circuit()
    (row,) = measured(silenced(model), data, [Trial(INDUCTION, [HEAD], "zero")])
    assert data.bigram_drops.abs().mean() > 0.3
    assert row.loss_drop_nats == pytest.approx(0, abs=1e-9)
    assert row.share is row.share_low is row.share_high is None


@pytest.mark.parametrize("method", ["zero", "mean", "resample", CONTROL])
@pytest.mark.parametrize("chunk", [1, 4, 10])
def test_chunks_give_what_all_windows_at_once_give(method: str, chunk: int) -> None:
    model = random_model(3, norm="rms")
    windows, rotations = evidence().held_out, [random_rotation(13, torch.Generator().manual_seed(0))]
    tried, natural = [WHOLE, Trial(INDUCTION, [(0, 1), (1, 2)], method)], model.trace(evidence().windows[:, :-1])
    whole, chunked = (text_drops(model, windows, tried, rotations, natural, n) for n in (len(windows), chunk))
    torch.testing.assert_close(chunked, whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(whole[0], loss_drops(token_losses(model, windows)), rtol=0, atol=1e-6)
    assert (whole[1] - whole[0]).abs().max() > 1e-3


def test_every_rotation_at_the_last_checkpoint_is_a_control_of_its_own() -> None:
    """Guards against a verdict that one random rotation decides."""
    tried = trials([HEAD], [[OTHER]], last=True)
    assert len([t for t in tried if t.method == CONTROL]) == ROTATIONS >= 4
    assert joint_ablation.TEXT >= 256
    model, data = circuit()
    rows = [r for r in measured(model, data, tried) if r.ablated == INDUCTION]
    rotated, ours = ([r for r in rows if (r.method == CONTROL) == control] for control in (True, False))
    assert len({round(r.loss_drop_lost, 9) for r in rotated}) == ROTATIONS
    least = min(r.loss_drop_lost for r in ours)
    assert [r.behind_nats for r in rotated] == pytest.approx([least - r.loss_drop_lost for r in rotated])
    assert all(r.behind_low <= r.behind_nats <= r.behind_high for r in rotated)
    assert len([t for t in trials([HEAD], [[OTHER]], last=False) if t.method == CONTROL]) == 1
