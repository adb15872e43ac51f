"""Broken weights are refused by name, half precision is computed in float32, and scores do not depend on the scale."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from pathsum.circuits.balance import power_share, projection_share, rms_norm
from pathsum.circuits.bigram import compare_with_corpus, direct_path, top_pairs
from pathsum.circuits.composition import (
    benjamini_hochberg,
    composition,
    composition_scores,
    sizes,
    variance,
    varying,
)
from pathsum.circuits.deleting import alignment, covariance, removed
from pathsum.circuits.eigenvalues import copying_eigenvalues, diagonal_rank, matching_eigenvalues, positivity
from pathsum.circuits.fuzzy_matching import standardised
from pathsum.circuits.joint_copying import pattern_similarity, similar_groups
from pathsum.circuits.matching import pair_matching_eigenvalues
from pathsum.circuits.paths import exactness
from pathsum.circuits.qk_ov import ov_circuit, qk_circuit, top_rows
from pathsum.circuits.score_paths import variance_contrast
from pathsum.circuits.subspaces import effective_rank, overlap
from pathsum.circuits.token_clusters import Cluster, singular_directions, token_clusters
from pathsum.circuits.value_weighted import value_weighted
from pathsum.core.weights import Head, Weights
from pathsum.statistics.trajectories import principal_components
from tests import handmade

D_VOCAB, D_MODEL, POS = 23, 11, 7
ALL, EVEN = torch.arange(D_VOCAB), torch.ones(D_VOCAB)


def model() -> Weights:
    return handmade.random_weights(seed=3, n_layers=2)


def times(weights: Weights, factor: float) -> Weights:
    """Multiply the weights of all heads."""
    layers = tuple(
        tuple(Head(*(factor * W for W in (h.W_Q, h.W_K, h.W_V, h.W_O))) for h in layer) for layer in weights.layers
    )
    return replace(weights, layers=layers)


def stream(weights: Weights, seed: int = 1) -> Tensor:
    """Return random writes in two windows, of the size and the precision of W_OV."""
    head, g = weights.layers[0][0], torch.Generator().manual_seed(seed)
    x = torch.randn(2, POS, len(weights.W_E), generator=g, dtype=torch.float64).to(head.W_O.dtype)
    return x @ head.W_V.mT @ head.W_O.mT


def pattern(weights: Weights) -> Tensor:
    g = torch.Generator().manual_seed(2)
    return torch.rand(2, len(weights.layers[0]), POS, POS, generator=g).to(weights.W_E.dtype).tril()


def clusters(weights: Weights) -> list[Cluster]:
    W_OV, generator = weights.layers[0][0].W_OV, torch.Generator().manual_seed(0)
    return token_clusters(weights, [W_OV], ALL, 2, 3, generator)[0]


def rank(weights: Weights) -> Tensor:
    found = diagonal_rank(ov_circuit(weights, weights.layers[0][0].W_OV), ALL)
    return torch.tensor([found.top1, found.top5])


# Scores that do not depend on the scale of the heads.
SCORES: dict[str, Callable[[Weights], Tensor]] = {
    **{
        f"composition {kind}": lambda w, kind=kind: torch.tensor(composition(w.layers[0][0], w.layers[1][1], kind))
        for kind in "QKV"
    },
    "composition_scores": lambda w: torch.tensor(
        [[s.value, s.p_value] for s in composition_scores(w, 19, torch.Generator().manual_seed(0))]
    ),
    "varying": lambda w: torch.tensor(
        composition(varying(w.layers[0][0], stream(w).mean((0, 1))), w.layers[1][0], "K")
    ),
    "sizes": lambda w: sizes(torch.tensor([variance(stream(w, seed)) for seed in (1, 2)], dtype=torch.float64)),
    "diagonal_rank": rank,
    "effective_rank": lambda w: torch.tensor(effective_rank(w.layers[0][0].W_OV)),
    "overlap": lambda w: torch.tensor(overlap(w.layers[0][0], w.layers[1][0], "K")),
    "alignment": lambda w: torch.tensor(alignment(w.layers[1][0].W_OV, covariance(stream(w))).value),
    "removed": lambda w: torch.tensor(removed(stream(w, 1), stream(w, 2))),
    "power_share": lambda w: torch.tensor(power_share(stream(w, 1), stream(w, 2), torch.ones(2, POS))),
    "projection_share": lambda w: torch.tensor(projection_share(stream(w, 1), stream(w, 2), torch.ones(2, POS))),
    "value_weighted": lambda w: value_weighted(pattern(w), stream(w), w.layers[0]),
    "standardised": lambda w: standardised(
        qk_circuit(w, w.layers[1][0].W_QK, EVEN), ALL[:3], ALL[3:6], EVEN > 0
    ),
    "singular_directions": lambda w: torch.tensor(
        [d.share for d in singular_directions(w, w.layers[0][0].W_OV, ALL, 3, 2)]
    ),
    "top_rows": lambda w: top_rows(ov_circuit(w, w.layers[0][0].W_OV), ALL, 3)[1],
}  # fmt: skip
EIGEN: dict[str, Callable[[Weights], Tensor]] = {
    "copying_eigenvalues": lambda w: torch.tensor(positivity(copying_eigenvalues(w, [w.layers[0][0].W_OV])[0])),
    "matching_eigenvalues": lambda w: torch.tensor(
        positivity(matching_eigenvalues(w, w.layers[1][0], w.layers[0][0], EVEN))
    ),
    "pair_matching_eigenvalues": lambda w: torch.tensor(
        positivity(pair_matching_eigenvalues(w, w.layers[1][0], ((), ((0, 0),)), (EVEN, EVEN), EVEN))
    ),
    "token_clusters": lambda w: torch.tensor([c.cohesion for c in clusters(w)]),
}


@pytest.mark.parametrize("name", [*SCORES, *EIGEN])
@pytest.mark.parametrize("factor", [1e-10, 1e-6, 1e5])
def test_a_score_does_not_depend_on_the_scale_of_the_heads(name: str, factor: float) -> None:
    if name in EIGEN and factor == 1e-10:
        pytest.skip("the eigenvalues, in nats, are below the smallest number of float32")
    score = (SCORES | EIGEN)[name]
    right = score(model())
    found = score(times(model(), factor).to(torch.float32))
    torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-5, check_dtype=False)


@pytest.mark.parametrize("name", SCORES)
def test_scaling_by_a_power_of_two_changes_no_bit(name: str) -> None:
    same = SCORES[name](times(model(), 2.0**-37).to(torch.float32))
    assert torch.equal(same, SCORES[name](model().to(torch.float32)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", SCORES)
def test_half_precision_is_computed_in_float32(name: str, dtype: torch.dtype) -> None:
    """Weights of 60: in float16, every product of two matrices overflows. The rounding of the weights remains."""
    if name in ("alignment", "removed", "power_share", "projection_share", "value_weighted", "varying", "sizes"):
        pytest.skip("their other input is computed here from the weights, in half precision")
    half = times(model(), 60).to(dtype)
    right = SCORES[name](half.to(torch.float64))
    torch.testing.assert_close(SCORES[name](half), right, rtol=0.05, atol=0.02, check_dtype=False)


def test_squares_of_activations_in_half_precision_do_not_overflow() -> None:
    x, y = (1000 * stream(model(), seed) / stream(model(), seed).abs().max() for seed in (1, 2))
    ones = torch.ones(2, POS)
    for score in (rms_norm, variance, lambda x: covariance(x).trace().item()):
        assert score(x.half()) == pytest.approx(score(x), rel=1e-2)
    for pair in (removed, lambda x, y: power_share(x, y, ones), lambda x, y: projection_share(x, y, ones)):
        assert pair(x.half(), y.half()) == pytest.approx(pair(x, y), rel=1e-2, abs=1e-3)


def test_activations_far_from_1_keep_their_units() -> None:
    for factor in (1e-30, 1e25):
        small = (factor * stream(model())).float()
        assert rms_norm(small) == pytest.approx(factor * rms_norm(stream(model())), rel=1e-6)
        assert variance(small) == pytest.approx(factor**2 * variance(stream(model())), rel=1e-6)
    scores = stream(model())[:, :, :POS].float()
    contrast = variance_contrast(scores, 1)
    torch.testing.assert_close(1e-25 * variance_contrast(1e-25 * scores, 1), contrast, rtol=1e-4, atol=1e-4)


def spoiled(value: float) -> Weights:
    """Return weights with one wrong number in W_O of the first head, and one in W_K of a head of the second layer."""
    weights = model()
    (first, *others), (late, *rest) = weights.layers
    W_O, W_K = first.W_O.clone(), late.W_K.clone()
    W_O[2, 1] = W_K[1, 2] = value
    layers = ((replace(first, W_O=W_O), *others), (replace(late, W_K=W_K), *rest))
    return replace(weights, layers=layers)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("name", [*SCORES, *EIGEN])
def test_weights_that_are_no_numbers_are_refused_by_name(name: str, value: float) -> None:
    if name in ("composition Q", "composition V", "composition K"):
        weights = spoiled(value)
        with pytest.raises(ValueError, match="expected finite weights, got NaN or infinity in a matrix of shape"):
            composition(weights.layers[0][0], weights.layers[1][1], name[-1])
        return
    with pytest.raises(ValueError, match=r"expected finite (weights|mean writes|writes|streams), got NaN or infinity"):
        (SCORES | EIGEN)[name](spoiled(value))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_other_inputs_that_are_no_numbers_are_refused_by_name(value: float) -> None:
    weights, counts, draws = model(), torch.ones(D_VOCAB, D_VOCAB), torch.Generator()
    wrong = torch.full((2, 2, POS, POS), 0.5)
    wrong[0, 0, 3, 2] = value
    direct = direct_path(replace(weights, W_U=weights.W_U * value))
    for call, what in (
        (lambda: benjamini_hochberg(torch.tensor([0.01, value, 0.5])), "p-values"),
        (lambda: exactness(torch.tensor([1.0, value]), torch.tensor([1.0, 2.0])), "sums of paths"),
        (lambda: exactness(torch.tensor([1.0, 2.0]), torch.tensor([1.0, value])), "logits"),
        (lambda: pattern_similarity(wrong), "patterns"),
        (lambda: value_weighted(wrong, stream(weights), weights.layers[0][:2]), "patterns"),
        (lambda: similar_groups(wrong[0, 0], 0.5), "similarities"),
        (lambda: variance_contrast(wrong[0], 1), "scores"),
        (lambda: alignment(weights.layers[0][0].W_OV, value * torch.eye(D_MODEL)), "covariances"),
        (lambda: compare_with_corpus(direct, counts, 1.0, draws), "weights"),
        (lambda: top_pairs(direct, counts, 3, 1.0), "weights"),
        (lambda: principal_components(wrong[0, 0], 2), "losses"),
    ):
        with pytest.raises(ValueError, match=f"expected finite {what}, got NaN or infinity"):
            call()


def test_a_head_of_zeros_still_scores_0() -> None:
    """Negative control: only what is not a number is refused."""
    weights = times(model(), 0.0)
    early, late = weights.layers[0][0], weights.layers[1][0]
    assert [composition(early, late, kind) for kind in "QKV"] == [0, 0, 0]
    assert (effective_rank(early.W_OV), overlap(early, late, "K")) == (0, (0, 0, 0))
    assert removed(stream(weights), stream(weights)) == 0
    assert value_weighted(pattern(weights), stream(model()), weights.layers[0]).sum() == 0
