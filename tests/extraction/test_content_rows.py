"""Tables by content for every depth, norm and position scheme; the matching pair of paths; the balance of the
stream."""

import itertools
import math

import pytest
import torch

from pathsum.circuits.score_paths import preference_contrast
from pathsum.extraction import content, score_paths
from pathsum.extraction.inputs import TrainedModel, trace_trained
from pathsum.extraction.weights_side import balance_rows
from pathsum.model.transformer import Transformer
from pathsum.records.paths import ContentRow, ContentScoreRow, MatchingRow, ScorePathRow
from pathsum.records.weights_side import BalanceRow
from tests import handmade
from tests.random_models import D_VOCAB, HOW, cell_of, config, evidence, loaded, random_model, seated


def shown(model: Transformer) -> TrainedModel:
    return trace_trained(model, cell_of(model), [], evidence(), HOW)


def content_of(trained: TrainedModel, kind: str) -> list[ContentRow]:
    return [row for row in content.tables(trained, evidence(), HOW)["content"] if row.kind == kind]


def scores_of(trained: TrainedModel) -> list[ContentScoreRow]:
    return content.tables(trained, evidence(), HOW)["content_scores"]


def paths_of(trained: TrainedModel) -> list[ScorePathRow]:
    return score_paths.tables(trained, evidence(), HOW)["score_paths"]


def matching_of(trained: TrainedModel) -> list[MatchingRow]:
    return score_paths.tables(trained, evidence(), HOW)["matching"]


def balance_of(trained: TrainedModel) -> list[BalanceRow]:
    return balance_rows(trained, evidence())


@pytest.mark.parametrize("norm", ["none", "rms", "layer"])
@pytest.mark.parametrize(("positions", "more"), [("none", 0), ("relative", 1), ("sinusoidal", 11)])
def test_the_rows_are_logits_and_scores_under_every_norm_and_position(norm: str, positions: str, more: int) -> None:
    """Identity in float64 with the model: the preferences of all pairs, of contents and of paths, add up to log A's."""
    trained = shown(random_model(1, norm=norm, positions=positions).float())
    made = content.tables(trained, evidence(), HOW)
    by_content, by_path = made["content_scores"], paths_of(trained)
    assert len(by_content) == 3 * (5 * 5 + more)
    assert len(by_path) == 3 * (4 * 4 + min(more, 9))
    assert max(row.exactness for row in (*by_content, *by_path, *made["content"])) < 1e-10
    for rows, (h, pattern) in itertools.product(
        (by_content, by_path), enumerate(trained.repeated.patterns[1].unbind(1))
    ):
        mine = [row for row in rows if row.head == h]
        assert sum(row.variance_share for row in mine) == pytest.approx(1, abs=1e-4)
        whole = sum(row.preference_nats for row in mine)
        data = torch.where(pattern > 0, pattern, 1).log() * preference_contrast(trained.block)
        assert whole == pytest.approx(data.sum((1, 2)).mean().item(), abs=1e-3)
        for row in mine if rows is by_content else []:
            assert (row.share_low is None) is (whole <= 0)
            if row.share_low is not None and row.share_high is not None:
                assert row.share_low <= row.preference_nats / whole + 1e-6
                assert row.preference_nats / whole <= row.share_high + 1e-6


def test_the_rows_are_the_same_in_chunks_and_hops_rest_on_all_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = shown(random_model(2, norm="rms", positions="relative").float())
    monkeypatch.setattr(content, "WINDOWS", 3)
    whole = content.tables(trained, evidence(), HOW)["content"]
    assert {(row.kind, row.windows) for row in whole} == {("hops", len(evidence().windows)), ("offset", 3)}
    monkeypatch.setattr(content, "CHUNK", 2)
    for a, b in zip(whole, content.tables(trained, evidence(), HOW)["content"], strict=True):
        assert (a.added_nats, a.removed_high) == pytest.approx((b.added_nats, b.removed_high), abs=1e-5)
        assert a.own_scale_low == pytest.approx(b.own_scale_low, abs=1e-5)


@pytest.mark.parametrize("n_layers", [0, 1, 3])
def test_every_depth_has_its_hops_and_what_they_add_is_the_models_loss(n_layers: int) -> None:
    """The loss reductions of terms added first sum to log d_vocab minus the loss, at frozen and at own scales."""
    model = random_model(2, n_layers=n_layers, norm="rms", positions="relative").float()
    trained, windows = shown(model), evidence().windows
    loss = torch.nn.functional.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten()).item()
    hops, offsets = content_of(trained, "hops"), content_of(trained, "offset")
    assert [row.content for row in hops] == [str(n) for n in range(n_layers + 1)]
    assert [row.content for row in offsets] == ["0", "1", "2", "3+", "BOS"]
    for rows in (hops, offsets):
        assert sum(row.added_nats for row in rows) == pytest.approx(math.log(D_VOCAB) - loss, abs=1e-4)
    assert sum(row.own_scale_nats or 0 for row in hops) == pytest.approx(math.log(D_VOCAB) - loss, abs=1e-4)
    assert {row.own_scale_nats for row in offsets} == {None}


def test_rotated_scores_split_by_path_and_match_by_no_weights() -> None:
    trained = shown(random_model(3, positions="rotary", d_head=4).float())
    assert max(row.exactness for row in (*paths_of(trained), *scores_of(trained))) < 1e-10
    assert matching_of(trained) == []


def test_where_scores_do_not_split_the_logits_still_do() -> None:
    model = random_model(3, smeared_keys=True).float()
    trained = shown(model)
    assert scores_of(trained) == matching_of(trained) == paths_of(trained) == []
    assert max(row.exactness for row in content_of(trained, "hops")) < 1e-10
    with pytest.raises(ValueError, match="expected keys of one position each"):
        score_paths.sides(model.layers[1], 0, model.weights().layers[1][0], torch.zeros(1, 1, 3, 13))


def test_other_weights_than_the_model_s_fail_the_exactness_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with the weights of another model, neither groups nor pairs of paths add up."""
    model, other, windows = random_model(4, norm="rms"), random_model(5, norm="rms"), evidence().windows[:, :-1]
    trace = model.trace(windows)
    assert max(score_paths.path_pair_errors(model, trace, 1, windows)) < 1e-10
    monkeypatch.setattr(model, "weights", other.weights)
    logits, by_head = content.group_errors(model, windows)
    assert min(logits, *by_head.values()) > 0.01
    assert min(score_paths.path_pair_errors(model, trace, 1, windows)) > 0.1


def test_three_layers_have_paths_of_order_two_and_one_has_none() -> None:
    rows = paths_of(shown(random_model(2, n_layers=3, norm="rms", positions="relative").float()))
    assert len(rows) == 3 * (4 * 4 + 1) + 3 * (16 * 16 + 1)
    assert max(row.exactness for row in rows) < 1e-10
    assert {row.key for row in rows if row.layer == 2} >= {"direct", "L0H1", "L1H2", "L0H1→L1H2", "position"}
    assert paths_of(shown(random_model(5, n_layers=1).float())) == []


def self_attending() -> Transformer:
    """Return ``handmade.self_attending_pair`` in a model: by its bias, head 0 attends one back and head 1 to itself."""
    weights = handmade.self_attending_pair(D_VOCAB)
    shape = {"d_model": 3 * D_VOCAB, "d_head": D_VOCAB, "n_heads": 2, "positions": "relative"}
    model = Transformer(config(**shape), D_VOCAB, torch.Generator()).requires_grad_(False)
    for p in model.parameters():
        p.zero_()
    model = loaded(model, weights)
    for head, distance in ((0, 1), (1, 0)):
        model.layers[0].bias[head, distance] = 40  # type: ignore[union-attr]
    return model


def test_a_head_that_attends_to_itself_is_q_and_k_by_heads_and_current_against_previous_token_by_content() -> None:
    """The names of paths are misleading here: by heads the preference is Q&K, by content it is K-composition."""
    trained = shown(self_attending())
    by_heads = {(r.query, r.key): r for r in paths_of(trained) if r.head == 0}
    by_content = {(r.query, r.key): r for r in scores_of(trained) if r.head == 0}
    assert by_heads["L0H1", "L0H0"].preference_nats > 25
    assert abs(by_heads["direct", "L0H0"].preference_nats) < 1e-4
    assert by_content["0", "1"].preference_nats == pytest.approx(by_heads["L0H1", "L0H0"].preference_nats, rel=1e-3)
    assert by_content["0", "1"].variance_share == pytest.approx(1, abs=1e-3)
    row = next(r for r in matching_of(trained) if r.head == 0)
    assert (row.query, row.key) == ("L0H1", "L0H0")
    assert (row.positivity, row.chosen_share, row.judged_share) == pytest.approx((1, 1, 1), abs=1e-3)


@pytest.mark.parametrize(("previous", "induction"), [(0, 1), (2, 0)])
def test_where_the_query_is_direct_both_measures_agree(previous: int, induction: int) -> None:
    trained = shown(seated(previous, induction))
    best = max(scores_of(trained), key=lambda row: row.preference_nats)
    assert (best.layer, best.head, best.query, best.key) == (1, induction, "0", "1")
    assert best.variance_share > 0.9
    along = max(paths_of(trained), key=lambda row: row.preference_nats)
    assert (along.layer, along.head, along.query, along.key) == (1, induction, "direct", f"L0H{previous}")
    assert along.preference_nats > 20
    assert along.variance_share > 0.9
    assert all(abs(row.preference_nats) < 0.1 for row in paths_of(trained) if row != along)
    (row,) = [r for r in matching_of(trained) if r.head == induction]
    assert (row.query, row.key) == ("direct", f"L0H{previous}")
    assert row.positivity > 0.9


def test_random_heads_match_nothing() -> None:
    """Negative control: the positivity of random circuits is a sum of few random signs, around 0."""
    found = [row.positivity for seed in range(7) for row in matching_of(shown(random_model(seed, norm="rms").float()))]
    assert abs(sum(found) / len(found)) < 0.3


@pytest.mark.parametrize("norm", ["none", "rms", "layer"])
def test_the_parts_that_are_read_add_up(norm: str) -> None:
    """Projection shares of embedding and layers add up to 1, and those of heads add up to that of their layer."""
    rows = balance_of(shown(random_model(6, n_layers=3, norm=norm).float()))
    assert [len([r for r in rows if r.reader == n]) for n in range(4)] == [1, 5, 9, 13]
    for reader in range(4):
        shares = {r.part: r.projection_share for r in rows if r.reader == reader}
        assert sum(x for part, x in shares.items() if "H" not in part) == pytest.approx(1, abs=1e-5)
        for layer in range(reader):
            heads = sum(x for part, x in shares.items() if part.startswith(f"L{layer}H"))
            assert heads == pytest.approx(shares[f"L{layer}"], abs=1e-5)


def test_a_small_embedding_is_seen_in_the_balance() -> None:
    """Calibration: an embedding that is scaled down by 1000 has a millionth of the power of the other parts."""
    model = random_model(7).float()
    before = {(r.reader, r.part): r for r in balance_of(shown(model))}
    assert before[0, "embedding"].power_share == before[0, "embedding"].projection_share == 1
    tokens = evidence().windows[:, :-1]
    expected = model.embed(tokens).square().sum(-1).mean().sqrt().item()
    assert before[1, "embedding"].norm == pytest.approx(expected, rel=1e-5)
    normed = random_model(7, norm="rms").float()  # its heads write as much, however small what they read
    normed.W_E.mul_(1e-3)
    after = {(r.reader, r.part): r for r in balance_of(shown(normed))}
    assert after[1, "embedding"].power_share < 1e-5 < 1e-2 < before[1, "embedding"].power_share
