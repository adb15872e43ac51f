"""Labels of heads, the logit lens and the losses on single tokens, for a model that is trained for a second."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pathsum.behavior import induction, positional
from pathsum.behavior.labels import THRESHOLDS
from pathsum.config import CellConfig
from pathsum.extraction import behaviour, formation
from pathsum.extraction.inputs import TrainedModel, trace_trained
from pathsum.model.checkpoint import load_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.training.evaluate import token_losses
from tests.extraction.small import HOW, evidence
from tests.training.small import CELL, D_VOCAB, MODEL, trained

SEEN = evidence()


def untrained(**model: object) -> TrainedModel:
    """Return a model with random weights, including the outputs of later layers."""
    cell = CellConfig(**{**CELL.model_dump(), "model": {**MODEL.model_dump(), **model}})
    found = Transformer(cell.model, D_VOCAB, torch.Generator().manual_seed(1)).eval().requires_grad_(False)
    for layer in found.layers:
        layer.W_O.copy_(torch.randn(layer.W_O.shape, generator=torch.Generator().manual_seed(2)) / 4)
    return trace_trained(found, cell, [], SEEN, HOW)


@pytest.mark.parametrize("norm", ["none", "rms", "layer"])
def test_what_is_read_unembeds_to_the_models_own_loss(norm: str) -> None:
    trained = untrained(norm=norm)
    rows = behaviour.tables(trained, SEEN, HOW)["lens"]
    assert [r.layers for r in rows] == [0, 1, 2]
    assert rows[-1].loss_nats == pytest.approx(token_losses(trained.model, SEEN.windows).mean().item(), rel=1e-5)
    assert all(r.low < r.loss_nats < r.high for r in rows)


def test_a_score_is_the_mean_that_the_circuits_give_and_no_untrained_head_has_a_label() -> None:
    """Negative control: random heads have no label, except that position 0 may get high attention by chance.

    Offsets are scored on every second window only.
    """
    trained = untrained(norm="rms")
    rows = behaviour.tables(trained, SEEN, HOW)["labels"]
    found = {(r.layer, r.head, r.behaviour): r for r in rows}
    assert {r.behaviour for r in rows if r.threshold is not None} == set(THRESHOLDS)
    for layer in range(2):
        previous = positional.previous_token(trained.natural.patterns[layer])
        matching = induction.prefix_matching(trained.repeated.patterns[layer], trained.block)
        for head in range(2):
            assert found[layer, head, "previous token"].score == pytest.approx(previous[head].item(), abs=1e-6)
            assert found[layer, head, "induction: uniform"].score == pytest.approx(matching[head].item(), abs=1e-6)
    assert [r for r in rows if r.labelled] == []
    assert all(r.low <= r.score <= r.high and (r.distance is None) == (r.behaviour != "offset") for r in rows)


def test_without_heads_there_are_no_labels_and_one_loss() -> None:
    found = behaviour.tables(untrained(n_layers=0), SEEN, HOW)
    assert found["labels"] == []
    assert [r.layers for r in found["lens"]] == [0]


def test_the_same_model_gives_the_same_rows() -> None:
    first, second = (behaviour.tables(untrained(), SEEN, HOW) for _ in range(2))
    assert first == second


def test_single_losses_average_to_the_logged_loss_from_a_twentieth_of_the_training_on(tmp_path: Path) -> None:
    log = trained(tmp_path)
    checkpoints = sorted((tmp_path / "checkpoints").iterdir())
    model = trace_trained(load_checkpoint(checkpoints[-1], SEEN.tokenizer_hash), CELL, log, SEEN, HOW, checkpoints)
    rows = formation.tables(model, SEEN, HOW)["token_losses"]
    assert [r.step for r in rows] == [e.step for e in log if e.step >= 2]
    shown = SEEN.windows[: formation.TRAJECTORY_WINDOWS]
    last = token_losses(load_checkpoint(checkpoints[-1], SEEN.tokenizer_hash), shown).mean().item()
    assert sum(rows[-1].losses_nats) / shown[:, 1:].numel() == pytest.approx(last, rel=1e-5)
