"""The pairs of paths in attention scores, for every depth, norm and position scheme."""

from __future__ import annotations

import pytest
import torch

from pathsum.circuits.score_paths import preference_contrast
from pathsum.extraction.inputs import TrainedModel, trace_trained
from pathsum.extraction.pairs import sides
from pathsum.extraction.score_paths import path_pair_errors, tables
from pathsum.model.transformer import Transformer
from pathsum.records.paths import ScorePathRow
from tests.random_models import HOW, cell_of, evidence, random_model, seated


def shown(model: Transformer) -> TrainedModel:
    return trace_trained(model, cell_of(model), [], evidence(), HOW)


def rows_of(trained: TrainedModel) -> list[ScorePathRow]:
    return tables(trained, evidence(), HOW)["score_paths"]


@pytest.mark.parametrize("norm", ["none", "rms", "layer"])
@pytest.mark.parametrize(("positions", "more"), [("none", 0), ("relative", 1), ("sinusoidal", 9)])
def test_the_pairs_are_the_scores_under_every_norm_and_position(norm: str, positions: str, more: int) -> None:
    """Identity in float64 with the model's attention: the preferences of all pairs add up to that of log A."""
    model = random_model(1, norm=norm, positions=positions)
    trained = shown(model.float())
    rows = rows_of(trained)
    assert len(rows) == 3 * (4 * 4 + more)
    assert max(row.exactness for row in rows) < 1e-10
    for h, pattern in enumerate(trained.repeated.patterns[1].unbind(1)):
        mine = [row for row in rows if row.head == h]
        assert sum(row.variance_share for row in mine) == pytest.approx(1, abs=1e-4)
        data = torch.where(pattern > 0, pattern, 1).log() * preference_contrast(trained.block)
        assert sum(row.preference_nats for row in mine) == pytest.approx(data.sum((1, 2)).mean().item(), abs=1e-3)


def test_three_layers_have_paths_of_order_two() -> None:
    trained = shown(random_model(2, n_layers=3, norm="rms", positions="relative").float())
    rows = rows_of(trained)
    assert len(rows) == 3 * (4 * 4 + 1) + 3 * (16 * 16 + 1)
    assert max(row.exactness for row in rows) < 1e-10
    assert {row.key for row in rows if row.layer == 2} >= {"direct", "L0H1", "L1H2", "L0H1→L1H2", "position"}


def test_other_weights_than_the_model_s_fail_the_exactness_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with the weights of another model, the pairs of paths do not add up to the scores."""
    model, other = random_model(3, norm="rms"), random_model(4, norm="rms")
    windows = evidence().windows[:, :-1]
    trace = model.trace(windows)
    assert max(path_pair_errors(model, trace, 1, windows)) < 1e-10
    monkeypatch.setattr(model, "weights", other.weights)
    assert min(path_pair_errors(model, trace, 1, windows)) > 0.1


@pytest.mark.parametrize(("previous", "induction"), [(0, 1), (2, 0)])
def test_the_induction_head_s_preference_names_the_previous_token_head(previous: int, induction: int) -> None:
    rows = rows_of(shown(seated(previous, induction)))
    best = max(rows, key=lambda row: row.preference_nats)
    assert (best.layer, best.head, best.query, best.key) == (1, induction, "direct", f"L0H{previous}")
    assert best.preference_nats > 20
    assert best.variance_share > 0.9
    assert all(abs(row.preference_nats) < 0.1 for row in rows if row is not best)


@pytest.mark.parametrize("n_layers", [0, 1])
def test_nothing_to_compose_with_gives_no_rows(n_layers: int) -> None:
    assert rows_of(shown(random_model(5, n_layers=n_layers).float())) == []


@pytest.mark.parametrize("changes", [{"positions": "rotary", "d_head": 4}, {"smeared_keys": True}])
def test_scores_that_do_not_split_have_no_rows_and_are_refused(changes: dict[str, object]) -> None:
    model = random_model(6, **changes).float()
    assert rows_of(shown(model)) == []
    with pytest.raises(ValueError, match="expected positions that add to what heads read or to scores, got rotary"):
        sides(model.layers[1], 0, model.weights().layers[1][0], torch.zeros(1, 1, 3, 13))


def test_the_same_model_gives_the_same_rows_and_is_left_as_it_was() -> None:
    trained = shown(random_model(7).float())
    before = [p.clone() for p in trained.model.parameters()]
    assert rows_of(trained) == rows_of(trained)
    assert all(p.equal(q) and p.dtype == q.dtype for p, q in zip(trained.model.parameters(), before, strict=True))
