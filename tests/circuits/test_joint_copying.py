"""Heads with similar patterns, judged together."""

import pytest
import torch

from pathsum.circuits.eigenvalues import copying_eigenvalues, diagonal_rank, positivity
from pathsum.circuits.joint_copying import joint_OV, pattern_similarity, similar_groups
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.core.weights import Head
from tests import handmade

D_VOCAB, POS = 23, 7


def test_similarity_is_the_cosine_over_all_windows_and_resting_is_no_likeness() -> None:
    back = handmade.previous_token_pattern(POS)
    rest = torch.zeros(POS, POS, dtype=torch.float64)
    rest[:, 0] = 1
    half = 0.5 * back + 0.5 * rest  # looks where ``back`` looks, half as much
    similarity = pattern_similarity(torch.stack([back, half, rest, rest, torch.eye(POS).double()])[None])
    expected = torch.eye(5, dtype=torch.float64)
    expected[0, 1] = expected[1, 0] = 1
    torch.testing.assert_close(similarity, expected, rtol=0, atol=1e-12)
    g = torch.Generator().manual_seed(1)
    pattern = torch.rand(3, 2, POS, POS, generator=g, dtype=torch.float64)
    a, b = (pattern[:, h, :, 1:].flatten() for h in (0, 1))
    assert pattern_similarity(pattern)[0, 1].item() == pytest.approx((a @ b / (a.norm() * b.norm())).item(), abs=1e-12)


def test_a_chain_of_likenesses_is_no_group() -> None:
    """Head 0 is similar to 1, and 1 to 2, but 0 is not similar to 2. Head 3 is similar to none."""
    similarity = torch.eye(4)
    similarity[0, 1] = similarity[1, 0] = 0.8
    similarity[1, 2] = similarity[2, 1] = 0.7
    assert similar_groups(similarity, 0.5) == [(0, 1), (2,), (3,)]
    assert similar_groups(similarity, 0.9) == [(0,), (1,), (2,), (3,)]
    similarity[0, 2] = similarity[2, 0] = 0.6
    assert similar_groups(similarity, 0.5) == [(0, 1, 2), (3,)]


def test_heads_that_each_copy_a_part_copy_all_together() -> None:
    eye, nothing = torch.eye(D_VOCAB, dtype=torch.float64), torch.zeros(D_VOCAB, D_VOCAB, dtype=torch.float64)
    weights = handmade.copying_head(D_VOCAB)
    keep = [torch.diag((torch.arange(D_VOCAB) < 11).double()), torch.diag((torch.arange(D_VOCAB) >= 11).double())]
    heads = [Head(nothing, nothing, k, eye) for k in keep]
    alone = [diagonal_rank(ov_circuit(weights, joint_OV([h])), torch.arange(D_VOCAB)).top1 for h in heads]
    assert alone == pytest.approx([11 / 23, 12 / 23])
    both = joint_OV(heads)
    assert diagonal_rank(ov_circuit(weights, both), torch.arange(D_VOCAB)).top1 == 1
    assert positivity(copying_eigenvalues(weights, [both])[0]) == pytest.approx(1, abs=1e-12)
    heads = handmade.random_weights(seed=3, n_layers=1).layers[0]
    total = sum(h.W_O @ h.W_V for h in heads)
    torch.testing.assert_close(joint_OV(heads).dense(), total, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="expected at least one head, got none"):
        joint_OV([])
