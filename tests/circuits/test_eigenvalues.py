"""Copying and matching by eigenvalues."""

import pytest
import torch

from pathsum.circuits.eigenvalues import copying_eigenvalues, diagonal_rank, matching_eigenvalues, positivity
from pathsum.circuits.joint_copying import joint_OV
from pathsum.circuits.qk_ov import ov_circuit
from tests import handmade

D_VOCAB = 23
ALL = torch.arange(D_VOCAB)


def by_size(eigenvalues: torch.Tensor) -> torch.Tensor:
    return eigenvalues[eigenvalues.abs().argsort(descending=True)]


def test_each_product_has_its_own_eigenvalues() -> None:
    """For a head, a virtual head, and a sum of heads of rank above d_model, by the sums of λ, λ² and λ³. AB and BA have
    the same non-zero eigenvalues."""
    weights = handmade.random_weights(seed=1, n_layers=2, n_heads=3)
    (first, *others), (late, *_) = weights.layers
    W_OVs = [first.W_OV, late.W_OV.after(first.W_OV), joint_OV([first, *others])]
    for found, W_OV in zip(copying_eigenvalues(weights, W_OVs), W_OVs, strict=True):
        whole = torch.linalg.eigvals(ov_circuit(weights, W_OV).dense())
        for power in (1, 2, 3):
            torch.testing.assert_close((found**power).sum(), (whole**power).sum(), rtol=1e-10, atol=1e-10)
        one = by_size(ov_circuit(weights, W_OV).eigenvalues()).abs()
        torch.testing.assert_close(by_size(found).abs(), one, rtol=0, atol=1e-10)


def test_a_copying_head_has_positive_eigenvalues_and_a_deleting_head_negative_ones() -> None:
    """Calibration: the identity centered over 23 outputs has 22 eigenvalues of 1 and one of 0."""
    for weights, sign in [(handmade.copying_head(D_VOCAB), 1), (handmade.deleting_head(D_VOCAB), -1)]:
        (eigenvalues,) = copying_eigenvalues(weights, [weights.layers[0][0].W_OV])
        assert positivity(eigenvalues) == pytest.approx(sign, abs=1e-12)
        assert eigenvalues.real.sum().item() == pytest.approx(22 * sign, abs=1e-12)
    still = handmade.copying_head(D_VOCAB, strength=0)
    assert positivity(copying_eigenvalues(still, [still.layers[0][0].W_OV])[0]) == 0
    for wrong in (torch.nan, torch.inf):
        with pytest.raises(ValueError, match="expected finite eigenvalues"):
            positivity(torch.tensor([1.0, wrong], dtype=torch.complex64))


def test_a_head_that_raises_the_next_token_does_not_copy() -> None:
    """The eigenvalues of a cyclic shift lie evenly on the unit circle. Centering removes that of the constant vector
    only."""
    cycle = torch.eye(D_VOCAB).roll(1, 0)
    weights = handmade.skip_trigram_head(torch.zeros(D_VOCAB, D_VOCAB), cycle)
    assert positivity(copying_eigenvalues(weights, [weights.layers[0][0].W_OV])[0]) == pytest.approx(-1 / 22, abs=1e-12)


def test_random_heads_copy_neither_way() -> None:
    """Negative control: positivity is as often positive as negative."""
    scores = []
    for seed in range(41):
        weights = handmade.random_weights(seed, n_layers=1, n_heads=1)
        scores.append(positivity(copying_eigenvalues(weights, [weights.layers[0][0].W_OV])[0]))
    mean, deviation = torch.tensor(scores).mean().item(), torch.tensor(scores).std().item()
    assert abs(mean) < 4 * deviation / 41**0.5
    assert min(scores) < 0 < max(scores)


def test_a_virtual_head_copies_where_neither_of_its_heads_does() -> None:
    weights = handmade.virtual_head(D_VOCAB)
    early, late = weights.layers[0][0].W_OV, weights.layers[1][0].W_OV
    assert positivity(copying_eigenvalues(weights, [late.after(early)])[0]) == pytest.approx(1, abs=1e-12)
    for eigenvalues in copying_eigenvalues(weights, [early, late, early.after(late)]):
        assert positivity(eigenvalues) == 0


def test_an_induction_head_matches_through_the_previous_token_head_alone() -> None:
    weights, even = handmade.induction_pair(D_VOCAB), torch.ones(D_VOCAB, dtype=torch.float64)
    previous, induction = weights.layers[0][0], weights.layers[1][0]
    matching = matching_eigenvalues(weights, late=induction, early=previous, unigram=even)
    assert positivity(matching) == pytest.approx(1, abs=1e-12)
    assert matching.real.sum().item() == pytest.approx(30 * 22, abs=1e-9)
    assert positivity(copying_eigenvalues(weights, [induction.W_OV])[0]) == pytest.approx(1, abs=1e-12)
    assert positivity(matching_eigenvalues(weights, late=induction, early=induction, unigram=even)) == 0


@pytest.mark.parametrize("block", [3, 256])
def test_the_diagonal_rank_tells_copying_from_deleting(block: int) -> None:
    for weights, share in [(handmade.copying_head(D_VOCAB), 1.0), (handmade.deleting_head(D_VOCAB), 0.0)]:
        rank = diagonal_rank(ov_circuit(weights, weights.layers[0][0].W_OV), ALL, block)
        assert (rank.top1, rank.top5) == (share, share)


def test_the_diagonal_rank_counts_rivals_and_loses_ties() -> None:
    """Token t has t tokens above it, so 1 of 23 tokens is first and 5 of 23 are among the first five."""
    ov = torch.eye(D_VOCAB) + 2 * torch.ones(D_VOCAB, D_VOCAB).triu(1)
    weights = handmade.skip_trigram_head(0 * ov, ov)
    rank = diagonal_rank(ov_circuit(weights, weights.layers[0][0].W_OV), ALL)
    assert (rank.top1, rank.top5) == (1 / 23, 5 / 23)
    still = handmade.copying_head(D_VOCAB, strength=0)
    assert diagonal_rank(ov_circuit(still, still.layers[0][0].W_OV), ALL).top5 == 0
    assert diagonal_rank(ov_circuit(weights, weights.layers[0][0].W_OV), ALL[:2]).top1 == 1 / 2
    with pytest.raises(ValueError, match="expected at least one source token"):
        diagonal_rank(ov_circuit(still, still.layers[0][0].W_OV), ALL[:0])


def test_eigenvalues_in_half_precision_are_refused() -> None:
    """Rounding to bfloat16 changes the eigenvalues of non-normal matrices too much (docs/framework.md §9.8)."""
    weights = handmade.random_weights(seed=0, n_layers=2).to(torch.bfloat16)
    early, late = weights.layers[0][0], weights.layers[1][0]
    for refused in (
        lambda: copying_eigenvalues(weights, [early.W_OV]),
        lambda: matching_eigenvalues(weights, late, early, torch.ones(D_VOCAB)),
    ):
        with pytest.raises(ValueError, match=r"eigenvalues need float32 at least, got torch\.bfloat16"):
            refused()
