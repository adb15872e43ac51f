"""Copying on text: heads that raise what they attend to, heads that write a constant, and random heads."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from pathsum.circuits.copying import attended_logits, own_entries, removal_rises
from pathsum.circuits.qk_ov import ov_circuit
from tests import handmade

D_VOCAB, D_MODEL, BATCH, POS = 29, 19, 31, 13


def windows(seed: int = 1) -> torch.Tensor:
    """Return windows of BOS (0) and tokens that recur, each from five tokens of its own, as topics do."""
    g = torch.Generator().manual_seed(seed)
    topics = 1 + torch.stack([torch.randperm(D_VOCAB - 1, generator=g)[:5] for _ in range(BATCH)])
    tokens = topics.gather(1, torch.randint(5, (BATCH, POS), generator=g))
    tokens[:, 0] = 0
    return tokens


def test_a_copying_head_raises_what_it_attends_to_and_a_deleting_one_lowers_it() -> None:
    tokens, pattern = windows(), handmade.uniform_pattern(POS).expand(BATCH, -1, -1)
    for weights, sign in [(handmade.copying_head(D_VOCAB), 1), (handmade.deleting_head(D_VOCAB), -1)]:
        output = pattern @ weights.layers[0][0].W_OV.dense().mT[tokens]
        values, spread = attended_logits(pattern, output, tokens, weights.W_U)
        assert (sign * values).min() > 0
        assert sign * values.mean() > 10 * spread


def test_the_logit_of_attended_tokens_is_what_the_definition_says() -> None:
    """Two windows, one query: ⟨o, Σ A W_U[t]⟩ minus the same sum over the other window's tokens, without BOS."""
    g = torch.Generator().manual_seed(2)
    tokens = torch.tensor([[0, 3, 5], [0, 7, 3]])
    pattern = handmade.normal(g, 2, 3, 3).tril().exp().tril()
    output, W_U = handmade.normal(g, 2, 3, D_MODEL), handmade.normal(g, D_VOCAB, D_MODEL)
    logits = output @ (W_U - W_U.mean(0)).mT
    values, _ = attended_logits(pattern, output, tokens, W_U)
    for w, other in ((0, 1), (1, 0)):
        own, its = (
            sum(pattern[v, q, k] * logits[w, q, tokens[v, k]] for q in range(3) for k in (1, 2)) / 3 for v in (w, other)
        )
        assert values[w].item() == pytest.approx((own - its).item(), abs=1e-12)


def test_a_head_that_writes_one_vector_everywhere_scores_zero() -> None:
    """Guards against a comparison with a chance level: a constant raises frequent tokens, attended to or not."""
    g = torch.Generator().manual_seed(3)
    tokens = windows()
    pattern = handmade.normal(g, BATCH, POS, POS).exp().tril()
    pattern /= pattern.sum(-1, keepdim=True)
    W_U = handmade.normal(g, D_VOCAB, D_MODEL)
    constant = handmade.normal(g, D_MODEL).expand(BATCH, POS, -1)
    values, spread = attended_logits(pattern, constant, tokens, W_U)
    assert values.mean().item() == pytest.approx(0, abs=1e-12)
    assert values.abs().max() > 0.1
    assert spread == pytest.approx(0, abs=1e-12)


def test_random_heads_score_within_the_spread_of_random_rotations() -> None:
    """Their mean is 0 and their standard deviation ``spread``, whatever the number of windows."""
    g = torch.Generator().manual_seed(4)
    tokens, weights = windows(), handmade.random_weights(5, 1, d_vocab=D_VOCAB, d_model=D_MODEL)
    pattern = handmade.uniform_pattern(POS).expand(BATCH, -1, -1)
    output = pattern @ (weights.layers[0][0].W_OV.dense() @ weights.W_E).mT[tokens]
    scores, spreads = [], []
    for _ in range(400):
        rotation = torch.linalg.qr(handmade.normal(g, D_MODEL, D_MODEL))[0]
        rotation = rotation * torch.randn(D_MODEL, generator=g).sign()
        values, spread = attended_logits(pattern, output @ rotation, tokens, weights.W_U)
        scores.append(values.mean().item())
        spreads.append(spread)
    assert spreads == pytest.approx([spreads[0]] * len(spreads), rel=1e-12)
    assert abs(torch.tensor(scores).mean()) < 0.2 * spreads[0]
    assert torch.tensor(scores).std().item() == pytest.approx(spreads[0], rel=0.15)


def test_own_entries_are_the_diagonal_of_the_ov_circuit() -> None:
    weights = handmade.random_weights(6, 1, d_vocab=D_VOCAB, d_model=D_MODEL)
    head = weights.layers[0][0]
    torch.testing.assert_close(own_entries(weights, head), ov_circuit(weights, head.W_OV).dense().diagonal())


def test_removal_is_the_loss_of_logits_without_the_entries() -> None:
    """Identity: the rise equals the difference of two cross-entropies, also where tokens recur."""
    g = torch.Generator().manual_seed(7)
    tokens = torch.randint(1, 7, (3, POS + 1), generator=g)
    keys, targets = tokens[:, :-1], tokens[:, 1:]
    logits, moved = handmade.normal(g, 3, POS, 11), handmade.normal(g, 3, 2, POS, POS).tril()
    rises = removal_rises(moved, keys, targets, logits)
    before = cross_entropy(logits.mT, targets, reduction="none")
    for head in range(2):
        without = logits.clone()
        for w in range(3):
            for k in range(POS):
                without[w, :, keys[w, k]] -= moved[w, head, :, k]
        after = cross_entropy(without.mT, targets, reduction="none")
        torch.testing.assert_close(rises[:, head], after - before)
    assert removal_rises(0 * moved, keys, targets, logits).abs().max() < 1e-12
