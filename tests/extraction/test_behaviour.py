"""Labels of heads and the logit lens, for random models."""

import pytest

from pathsum.behavior import induction, positional
from pathsum.behavior.labels import THRESHOLDS
from pathsum.extraction import behaviour
from pathsum.training.evaluate import token_losses
from tests.extraction.small import HOW, evidence, untrained


@pytest.mark.parametrize("norm", ["none", "rms", "layer"])
def test_what_is_read_unembeds_to_the_models_own_loss(norm: str) -> None:
    trained = untrained(0.1, norm=norm)
    rows = behaviour.tables(trained, evidence(), HOW)["lens"]
    assert [r.layers for r in rows] == [0, 1, 2]
    assert rows[-1].loss_nats == pytest.approx(token_losses(trained.model, evidence().windows).mean().item(), rel=1e-5)
    assert all(r.low < r.loss_nats < r.high for r in rows)


def test_a_score_is_the_mean_that_the_circuits_give_and_no_untrained_head_has_a_label() -> None:
    """Negative control. Offsets are scored on every second window only."""
    trained = untrained(0.1, norm="rms")
    rows = behaviour.tables(trained, evidence(), HOW)["labels"]
    found = {(*r.place, r.behaviour): r for r in rows}
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
    found = behaviour.tables(untrained(n_layers=0), evidence(), HOW)
    assert found["labels"] == []
    assert [r.layers for r in found["lens"]] == [0]
