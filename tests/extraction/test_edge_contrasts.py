"""The K-edges of the induction circuit, compared with as many edges outside it, on weights whose circuit is known."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from pathsum.claims.causal import CLAIMS
from pathsum.claims.judging import NOT, REPRODUCED, judge
from pathsum.extraction import causal, circuit
from pathsum.extraction.circuit import Edge, Roles, cut, judged_windows, rival_sets, second_copy
from pathsum.extraction.inputs import TrainedModel, trace_trained
from pathsum.interventions.run import Run
from pathsum.model.transformer import Transformer
from pathsum.records.ablations import OUTSIDE, AblationRow, EdgeContrastRow
from tests.random_models import D_VOCAB, HOW, LOG, cell_of, evidence, random_model, seated
from tests.report import synthetic

PREVIOUS, TWIN, INDUCTION = 2, 0, 1


def trained(model: Transformer, previous: tuple[int, ...] = (PREVIOUS,), repeated: int = 31) -> TrainedModel:
    """Return the model with a log that names the previous-token heads and the induction head."""
    scores = [[float(h in heads) for h in range(3)] for heads in (previous, (INDUCTION,))]
    last = replace(LOG[-1], previous_token=scores, prefix_matching=[[0.0] * 3, scores[1]])
    how = HOW.model_copy(update={"repeated_windows": repeated})
    return trace_trained(model, cell_of(model), [last], evidence(), how)


def all_contrasts(shown: TrainedModel) -> list[EdgeContrastRow]:
    return causal.tables(shown, evidence(), HOW)["edge_contrasts"]


def contrasts(shown: TrainedModel) -> dict[str, EdgeContrastRow]:
    """Return the contrasts with edges outside the circuit, by method."""
    return {row.method: row for row in all_contrasts(shown) if row.rival == OUTSIDE}


def known_rise(shown: TrainedModel) -> float:
    """Return the rise of the second copy's loss if the induction head attends uniformly instead of to the matches."""
    tokens, block = judged_windows(shown, evidence()), shown.block
    here = F.one_hot(tokens, D_VOCAB).double()
    before = F.pad(here[:, :-1], (0, 0, 1, 0))
    before[:, 0] = here[:, 0]  # the first position attends to itself
    losses = []
    for scores in (30 * here @ before.mT, 0 * here @ before.mT):
        pattern = scores.masked_fill(torch.ones_like(scores[0]).triu(1) > 0, -torch.inf).softmax(-1)
        logits = (here + pattern @ here)[:, block + 1 : 2 * block]
        losses.append(F.cross_entropy(logits.mT, tokens[:, block + 2 :]).item())
    return losses[1] - losses[0]


def test_without_the_key_edge_the_loss_rises_as_computed_by_hand_and_without_rivals_it_stays() -> None:
    shown = trained(seated(PREVIOUS, INDUCTION))
    rows = contrasts(shown)
    assert set(rows) == {"zero", "resample"}
    assert rows["zero"].key_nats == pytest.approx(known_rise(shown), rel=1e-5)
    for row in rows.values():
        assert row.edges == "L0H2 → L1H1 (K)"
        assert len(row.rivals.split(", ")) == 1
        assert row.rival_nats == pytest.approx(0, abs=1e-6)
        assert row.low > 0.2
        assert row.windows == 64


def verdict(rows: list[EdgeContrastRow]) -> str:
    """Return the verdict of ``induction_key_edge`` on a model with these contrasts."""
    results = synthetic.results(layers=(2,), heads=(4,), seeds=(0,))
    (cell,) = results.cells.values()
    (claim,) = CLAIMS
    return judge(claim, replace(results, cells={cell.name: cell.having(edge_contrasts=rows)})).verdict


def through_queries_too() -> Transformer:
    """Return a model whose late head compares the previous-token head's write at the query with that at the key: it
    attends to copies of the current token, and lowers their logit."""
    model = seated(PREVIOUS, INDUCTION)
    late = model.layers[1]
    late.W_Q[INDUCTION] = late.W_K[INDUCTION] * late.W_Q[INDUCTION].abs().max() / late.W_K[INDUCTION].abs().max()
    late.W_O[INDUCTION] *= -1  # type: ignore[index, operator]
    return model


def test_edges_of_the_same_heads_through_queries_and_values_are_rivals() -> None:
    rows = all_contrasts(trained(seated(PREVIOUS, INDUCTION)))
    assert [(r.method, r.rival) for r in rows] == [(m, k) for m in ("zero", "resample") for k in ("Q", "V", "outside")]
    for row in rows[:2] + rows[3:5]:
        assert row.rivals == f"L0H2 → L1H1 ({row.rival})"
        assert row.rival_nats == pytest.approx(0, abs=1e-6)
    assert verdict(rows) == REPRODUCED


def test_a_head_that_reads_the_previous_token_head_equally_through_its_queries_does_not_pass() -> None:
    rows = {(r.method, r.rival): r for r in all_contrasts(trained(through_queries_too()))}
    zero = rows["zero", "Q"]
    assert zero.key_nats > 0.01
    assert zero.difference_nats == pytest.approx(0, abs=1e-6)
    outside = [r for r in rows.values() if r.rival == OUTSIDE]
    assert len(outside) == 2
    assert min(r.low for r in outside) > 0
    assert verdict(outside) == REPRODUCED
    assert verdict(list(rows.values())) == NOT


def test_without_enough_edges_outside_the_circuit_the_same_heads_still_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit, "outside", lambda *_: {})
    rows = all_contrasts(trained(seated(PREVIOUS, INDUCTION)))
    assert [(r.method, r.rival) for r in rows] == [(m, k) for m in ("zero", "resample") for k in "QV"]
    assert verdict(rows) == REPRODUCED


def test_heads_that_share_a_job_are_cut_together() -> None:
    shown = trained(seated(PREVIOUS, INDUCTION, TWIN), (TWIN, PREVIOUS))
    made = causal.tables(shown, evidence(), HOW)
    one = [
        r.second_copy_nats
        for r in made["ablations"]
        if (r.target, r.kind, r.method, r.layer, r.head) == ("edge", "K", "zero", 1, INDUCTION)
    ]
    assert max(one) < 1e-3  # each alone leaves 30 of 60 nats
    for row in made["edge_contrasts"]:
        assert row.difference_nats > 0.2
        assert row.low > 0.2
        assert row.edges == "L0H0 → L1H1 (K), L0H2 → L1H1 (K)"
    assert contrasts(shown)["zero"].key_nats == pytest.approx(known_rise(shown), rel=1e-5)


def test_heads_that_are_not_the_circuit_lose_to_the_edge_that_is() -> None:
    """Negative control: the log names a head that writes nothing."""
    for row in contrasts(trained(seated(PREVIOUS, INDUCTION), (TWIN,))).values():
        assert row.rivals == "L0H2 → L1H1 (K)"
        assert row.key_nats == pytest.approx(0, abs=1e-6)
        assert row.high < -0.2


def test_rivals_are_judged_on_other_windows_than_those_that_choose_them() -> None:
    shown = trained(seated(PREVIOUS, INDUCTION))
    judged = {tuple(window) for window in judged_windows(shown, evidence()).tolist()}
    assert len(judged) == 64
    assert not judged & {tuple(window) for window in shown.repeated_tokens.tolist()}


def test_no_edge_among_heads_of_the_circuit_is_a_rival_outside_it() -> None:
    shown = trained(seated(PREVIOUS, INDUCTION))
    roles = Roles.of(shown)
    assert roles is not None
    edges = [
        AblationRow("edge", kind, 1, late, 0, early, "zero", "recomputed", *[0.0] * 8, windows=12)
        for kind in "QKV"
        for late in range(3)
        for early in range(3)
    ]
    found = circuit.outside(edges, "zero", roles)
    among = {roles.induction, *roles.previous, *roles.two_back}
    assert len(among) == 3
    assert len(found) == 27 - 2 * 3
    assert not [edge for edge in found if edge.early in among and edge.late in among]
    assert circuit.outside(edges, "resample", roles) == {}


def test_rivals_are_as_many_and_may_stand_in_for_each_other() -> None:
    keys = [Edge("K", (0, head), (1, 0)) for head in range(2)]
    others = [Edge(kind, (0, 0), (1, 1)) for kind in "QV"]
    sets = rival_sets({keys[0]: 0.01, others[0]: 0.3, keys[1]: 0.02, others[1]: 0.2}, 2)
    assert sets == [(others[0], others[1]), (keys[1], keys[0])]
    assert rival_sets({keys[0]: 0.1}, 2) == []


def test_each_induction_head_loses_its_key_edges() -> None:
    shown = trained(seated(PREVIOUS, INDUCTION))
    last = replace(shown.log[-1], prefix_matching=[[0.0] * 3, [0.1, 0.9, 0.09]])
    roles = Roles.of(replace(shown, log=[last]))
    assert roles is not None
    assert (roles.induction, roles.inductions) == ((1, 1), ((1, 0), (1, 1)))
    row = contrasts(replace(shown, log=[last]))["zero"]
    assert row.edges == "L0H2 → L1H0 (K), L0H2 → L1H1 (K)"
    assert len(row.rivals.split(", ")) == 2


def test_edges_that_are_cut_together_are_a_model_without_them_whatever_the_chunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a norm, the V-edges of a head into all heads of the next layer are its paths through two heads."""
    shown = trained(random_model(7, norm="none").float())
    run, block = Run(shown.model, shown.repeated_tokens[:5]), shown.block
    edges = [Edge(kind, (0, 1), (1, late)) for kind in "QKV" for late in range(3)]
    x = run.streams[1] - run.output((0, 1))
    logits = F.linear(run.streams[1] + shown.model.attention(1).heads(x)[1].sum(1), shown.model.W_U)
    expected = F.cross_entropy(logits[:, block + 1 : 2 * block].mT, run.tokens[:, block + 2 :], reduction="none").mean(
        1
    )
    torch.testing.assert_close(second_copy(cut(run, edges, "zero"), block), expected.double(), rtol=1e-5, atol=1e-5)
    whole = contrasts(shown)["zero"]
    monkeypatch.setattr(circuit, "CHUNK", 7)
    assert contrasts(shown)["zero"].difference_nats == pytest.approx(whole.difference_nats, abs=1e-6)


def test_a_rotated_change_has_the_same_size() -> None:
    shown = trained(random_model(7, norm="none").float())
    run, late = Run(shown.model, shown.repeated_tokens[:5]), (1, 0)
    identity = torch.eye(run.streams[0].shape[-1])
    for method in ("zero", "mean", "resample"):
        plain, same = (cut(run, [Edge("V", (0, 1), late)], method, turned) for turned in (None, identity))
        torch.testing.assert_close(plain.replaced[late].output, same.replaced[late].output)


def test_the_fewest_windows_suffice_and_without_an_evaluation_there_is_no_contrast() -> None:
    shown = trained(seated(PREVIOUS, INDUCTION), repeated=3)
    assert contrasts(shown)["resample"].low > 0.2
    assert contrasts(replace(shown, log=[])) == {}
