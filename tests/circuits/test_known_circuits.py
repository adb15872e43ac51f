"""Hand-made circuits under every detector: each is found by its own detector, and by no other.

Scores of the last layer's head on BOS and 11 of 22 tokens given twice. "uniform" is the score of uniform causal
attention, 0.057.

| circuit             | prefix matching | copying | positivity of W_OV | composes by | positivity of matching |
|---------------------|-----------------|---------|--------------------|-------------|------------------------|
| copying head        | uniform         | 1       | 1                  |             |                        |
| deleting head       | uniform         | −1      | −1                 |             |                        |
| induction by keys   | 1               | 1       | 1                  | K           | 1                      |
| induction by queries| 1               | 1       | 1                  | Q           | 0                      |
| virtual head        | uniform         | 1       | 0                  | V           | 0                      |
"""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from pathsum.behavior.induction import copying, prefix_matching
from pathsum.circuits.atlas import effects, occurrences, source_weight, strongest
from pathsum.circuits.composition import composition_scores
from pathsum.circuits.eigenvalues import copying_eigenvalues, matching_eigenvalues, positivity
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.core.weights import Head, Weights
from tests import handmade

BLOCK, BATCH = 11, 5
POS = D_VOCAB = 1 + 2 * BLOCK  # the pointer has as many positions as tokens
EVEN = sum(1 / (p + 1) for p in range(BLOCK + 1, 2 * BLOCK + 1)) / BLOCK
ROTATIONS = 1009


@dataclass(frozen=True)
class Circuit:
    weights: Weights
    first: Tensor  # the first layer's pattern, where there are two
    positions: Tensor  # what is added to the residual stream


def circuits() -> dict[str, Circuit]:
    pointer, positions = handmade.pointer_pair(D_VOCAB)
    nothing, even = torch.zeros(1, 1, dtype=handmade.DTYPE), handmade.uniform_pattern(POS)
    return {
        "copying": Circuit(handmade.copying_head(D_VOCAB), even, nothing),
        "deleting": Circuit(handmade.deleting_head(D_VOCAB), even, nothing),
        "keys": Circuit(handmade.induction_pair(D_VOCAB), handmade.previous_token_pattern(POS), nothing),
        "queries": Circuit(pointer, handmade.same_token_pattern(BLOCK), positions),
        "virtual": Circuit(handmade.virtual_head(D_VOCAB), torch.eye(POS, dtype=handmade.DTYPE), nothing),
    }


def last_head(circuit: Circuit, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return pattern and output of the last layer's head, each with an axis of heads."""
    *earlier, (last,) = circuit.weights.layers
    x = circuit.weights.W_E.mT[tokens] + circuit.positions
    for (head,) in earlier:
        x = x + circuit.first @ x @ head.W_OV.dense().mT
    pattern = handmade.content_pattern(last, x)
    return pattern[:, None], (pattern @ x @ last.W_OV.dense().mT)[:, None]


@pytest.mark.parametrize(
    ("name", "matches", "copies", "positive"),
    [
        ("copying", EVEN, 1, 1),
        ("deleting", EVEN, -1, -1),
        ("keys", 1, 1, 1),
        ("queries", 1, 1, 1),
        ("virtual", EVEN, 1, 0),
    ],
)
def test_what_a_circuit_attends_to_and_raises_is_what_it_was_made_for(
    name: str, matches: float, copies: float, positive: float
) -> None:
    """The matching key has 30 nats more than at most 22 other keys. A virtual head copies although its late head alone
    does not."""
    circuit, tokens = circuits()[name], handmade.repeated_tokens(3, BATCH, D_VOCAB, BLOCK)
    pattern, output = last_head(circuit, tokens)
    assert prefix_matching(pattern, BLOCK).item() == pytest.approx(matches, abs=POS * math.exp(-30))
    assert copying(output, tokens, circuit.weights.W_U, BLOCK).item() == copies
    (eigenvalues,) = copying_eigenvalues(circuit.weights, [circuit.weights.layers[-1][0].W_OV])
    assert positivity(eigenvalues) == pytest.approx(positive, abs=1e-12)


@pytest.mark.parametrize(("name", "kind", "rooms"), [("keys", "K", 2), ("queries", "Q", 3), ("virtual", "V", 3)])
def test_a_mechanism_composes_through_its_own_kind_and_no_other(name: str, kind: str, rooms: int) -> None:
    """Isometries of rank 23 on the same space score 1/√23, other kinds score 0, and chance is 1/√(rooms · 23)."""
    found = {
        s.kind: s for s in composition_scores(circuits()[name].weights, ROTATIONS, torch.Generator().manual_seed(0))
    }
    assert found[kind].value == pytest.approx(1 / math.sqrt(D_VOCAB), rel=1e-12)
    assert found[kind].p_value == 2 / (1 + ROTATIONS)
    assert found[kind].chance == pytest.approx(1 / math.sqrt(rooms * D_VOCAB), rel=1e-12)
    others = [s for s in found.values() if s.kind != kind]
    assert {(s.value, s.early, s.late) for s in others} == {(0.0, (0, 0), (1, 0))}
    assert name != "keys" or found["V"].p_value == 2 / (1 + ROTATIONS)  # orthogonal subspaces: far below chance


def test_only_induction_by_keys_matches_tokens_through_the_earlier_head() -> None:
    """The eigenvalues of W_Eᵀ W_QK W_OV W_E detect K-composition only: pointer arithmetic compares positions, not
    tokens."""
    even = torch.ones(D_VOCAB, dtype=handmade.DTYPE)
    scores = {}
    for name in ("keys", "queries", "virtual"):
        weights = circuits()[name].weights
        (early,), (late,) = weights.layers
        scores[name] = positivity(matching_eigenvalues(weights, late, early, even))
    assert scores == {"keys": pytest.approx(1, abs=1e-12), "queries": 0, "virtual": 0}


def test_a_pointer_that_is_not_moved_on_finds_the_token_itself() -> None:
    """Negative control: without the step to the next position, the query attends to the earlier occurrence of its own
    token."""
    circuit, tokens = circuits()["queries"], handmade.repeated_tokens(3, BATCH, D_VOCAB, BLOCK)
    (same,), (late,) = circuit.weights.layers
    still = Head(late.W_Q.roll(-1, 0), late.W_K, late.W_V, late.W_O)
    weights = Weights(circuit.weights.W_E, circuit.weights.W_U, ((same,), (still,)))
    pattern, _ = last_head(Circuit(weights, circuit.first, circuit.positions), tokens)
    assert prefix_matching(pattern, BLOCK).item() < POS * math.exp(-30)
    assert pattern.diagonal(-BLOCK, -2, -1)[..., 1:].mean().item() == pytest.approx(1, abs=POS * math.exp(-30))


def test_synthetic_skip_trigrams_are_all_recovered_in_order_of_effect_and_nothing_else_comes_near() -> None:
    planted = [(2, 11, 5, 7.0, 3.0), (17, 3, 13, 5.0, 2.0), (7, 19, 2, 3.0, 1.0)]  # source, destination, out, QK, OV
    qk, ov = torch.zeros(D_VOCAB, D_VOCAB), torch.zeros(D_VOCAB, D_VOCAB)
    for source, destination, out, nats, logit in planted:
        qk[destination, source], ov[out, source] = nats, logit
    weights = handmade.skip_trigram_head(qk, ov)
    windows = torch.tensor([[0, source, 21, destination, out] for source, destination, out, _, _ in planted])
    head, at = weights.layers[0][0], occurrences(windows)
    pattern = handmade.content_pattern(head, weights.W_E.mT[windows[:, :-1]])
    ones = torch.ones(3, 4, dtype=handmade.DTYPE)
    effect = effects(ov_circuit(weights, head.W_OV), source_weight(pattern, ones, ones, at), at)
    found = strongest(effect, at, k=4)
    assert [t.triple for t in found] == [p[:3] for p in planted]
    share = (D_VOCAB - 1) / D_VOCAB  # the mean over outputs, which softmax does not see, taken off
    attention = [math.exp(p[3]) / (math.exp(p[3]) + 3) for p in planted]
    expected = [a * p[4] * share for a, p in zip(attention, planted, strict=True)]
    assert [t.total for t in found] == pytest.approx(expected, rel=1e-12)
