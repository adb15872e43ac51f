"""Composition scores between heads, compared with chance."""

import math
from dataclasses import replace

import pytest
import torch
from scipy.stats import kstest

from pathsum.circuits.composition import (
    KINDS,
    CompositionScore,
    benjamini_hochberg,
    composition,
    composition_scores,
    reader,
    rotation_null,
    scores_of_writers,
    sizes,
    spectra,
    variance,
    varying,
)
from pathsum.core.weights import Head, Weights
from tests import handmade

ROTATIONS = 211


def scores(weights: Weights, seed: int = 0) -> dict[str, CompositionScore]:
    """Return the scores of a model with one edge, by kind."""
    generator = torch.Generator().manual_seed(seed)
    return {score.kind: score for score in composition_scores(weights, ROTATIONS, generator)}


def rotated(head: Head, g: torch.Generator) -> Head:
    """Return the head with its writes multiplied by a Haar rotation; singular values stay the same."""
    Q, R = torch.linalg.qr(handmade.normal(g, len(head.W_O), len(head.W_O)))
    return Head(head.W_Q, head.W_K, head.W_V, Q * R.diagonal().sign() @ head.W_O)


def test_composition_scores_are_the_norms_of_whole_products() -> None:
    """Identity with the formulas of Elhage et al. 2021 in full. No factors are permuted cyclically (docs/framework.md
    §9.3)."""
    (early, *_), (late, *_) = handmade.random_weights(seed=1, n_layers=2).layers
    W_QK = late.W_Q.mT @ late.W_K / math.sqrt(5)
    W_OV, late_W_OV = early.W_O @ early.W_V, late.W_O @ late.W_V
    expected = {
        "Q": (W_OV.mT @ W_QK).norm() / (W_QK.norm() * W_OV.norm()),
        "K": (W_QK @ W_OV).norm() / (W_QK.norm() * W_OV.norm()),
        "V": (late_W_OV @ W_OV).norm() / (late_W_OV.norm() * W_OV.norm()),
    }
    for kind, value in expected.items():
        assert composition(early, late, kind) == pytest.approx(value.item(), rel=1e-12)
    cyclic = (early.W_V @ late.W_Q.mT @ late.W_K @ early.W_O).norm() / (5**0.5 * W_QK.norm() * W_OV.norm())
    assert abs(cyclic.item() - expected["K"].item()) > 1e-3


def test_chance_is_one_over_the_root_of_d_model() -> None:
    """E[score²] = 1/d_model exactly, for any spectra: a mean over 503 rotations, within 4 standard errors."""
    (early, *_), (late, *_) = handmade.random_weights(seed=2, n_layers=2).layers
    g = torch.Generator().manual_seed(3)
    for kind in KINDS:
        squares = torch.tensor([composition(rotated(early, g), late, kind) ** 2 for _ in range(503)])
        assert abs(squares.mean() - 1 / 13) < 4 * squares.std() / 503**0.5


def p_values(attraction: float, draws: int) -> dict[str, list[float]]:
    """Return p-values of pairs of random heads, by kind.

    ``attraction`` times the early head's W_Oᵀ is added to the late head's W_Q, W_K and W_V.
    """
    generator, found = torch.Generator().manual_seed(0), {kind: [] for kind in KINDS}
    for seed in range(draws):
        random = handmade.random_weights(seed, n_layers=2, n_heads=1)
        (early,), (late,) = random.layers
        reads = [W + attraction * early.W_O.mT for W in (late.W_Q, late.W_K, late.W_V)]
        weights = Weights(random.W_E, random.W_U, ((early,), (Head(*reads, late.W_O),)))
        for score in composition_scores(weights, ROTATIONS, generator):
            found[score.kind].append(score.p_value)
    return found


def test_p_values_of_random_heads_are_uniform_and_those_of_heads_that_lean_on_each_other_are_not() -> None:
    """Negative control, of pairs that share no rotations: Kolmogorov–Smirnov test for three kinds together at 1 %
    (Bonferroni), which would detect a deviation of 0.08. Positive control: half of the early head's writes, added to
    what the late head reads."""
    found = p_values(attraction=0.0, draws=500)
    assert min(kstest(some, "uniform").pvalue for some in found.values()) > 0.01 / 3
    assert (benjamini_hochberg(torch.tensor([p for some in found.values() for p in some])) > 0.01).all()
    assert max(kstest(some, "uniform").pvalue for some in p_values(attraction=0.5, draws=101).values()) < 1e-3


def test_the_null_keeps_the_spectra_and_its_mean_is_exact() -> None:
    """For spectra of different lengths and slopes, the mean of score² over 5003 rotations is 1/d_model within 4
    standard errors.

    Its spread equals that of rotations of the head itself.
    """
    (early,), (late,) = handmade.random_weights(seed=8, n_layers=2, n_heads=1).layers
    read, written = spectra([reader(late, "K")]), spectra([early.W_OV])
    assert read.sum().item() == pytest.approx(1, abs=1e-12)
    null = rotation_null(read, written, 13, 5003, torch.Generator().manual_seed(0)).flatten()
    assert abs(null.mean() - 1 / 13) < 4 * null.std() / 5003**0.5
    g = torch.Generator().manual_seed(1)
    turned = torch.tensor([composition(rotated(early, g), late, "K") ** 2 for _ in range(503)])
    assert turned.std() == pytest.approx(null.std().item(), rel=0.2)


def test_heads_of_full_rank_without_preference_cannot_compose_by_more_than_chance() -> None:
    """Every rotation of an isometry has the same score. This is a tie, not a discovery."""
    eye = torch.eye(11, dtype=torch.float64)
    head = Head(eye, eye, eye, eye)
    for score in scores(Weights(eye, eye, ((head,), (head,)))).values():
        assert score.value == pytest.approx(1 / math.sqrt(11), rel=1e-12)
        assert score.p_value == 1


def test_a_head_that_writes_nothing_composes_with_none() -> None:
    weights = handmade.induction_pair(11)
    early, late = weights.layers[0][0], weights.layers[1][0]
    silent = Weights(weights.W_E, weights.W_U, ((Head(early.W_Q, early.W_K, early.W_V, 0 * early.W_O),), (late,)))
    assert {(score.value, score.p_value) for score in scores(silent).values()} == {(0.0, 1.0)}


def test_heads_compose_with_those_of_every_earlier_layer() -> None:
    weights = handmade.random_weights(seed=4, n_layers=3, n_heads=2)
    edges = [(s.kind, s.early, s.late) for s in composition_scores(weights, 101, torch.Generator().manual_seed(0))]
    assert len(edges) == len(set(edges)) == 3 * 3 * 2 * 2
    assert all(early[0] < late[0] for _, early, late in edges)
    for n_layers in (0, 1):
        assert composition_scores(handmade.random_weights(seed=0, n_layers=n_layers), 101, torch.Generator()) == []
    assert scores_of_writers(weights, [], 101, torch.Generator()) == []


def test_benjamini_and_hochberg_s_q_values() -> None:
    """Computed by hand: 0.02 · 4/2 = 0.04, 0.03 · 4/3 = 0.04, 0.005 · 4 = 0.02, 0.5."""
    q = benjamini_hochberg(torch.tensor([0.03, 0.005, 0.5, 0.02], dtype=torch.float64))
    torch.testing.assert_close(q, torch.tensor([0.04, 0.02, 0.5, 0.04], dtype=torch.float64))
    assert len(benjamini_hochberg(torch.empty(0))) == 0


def test_no_rotations_and_an_unknown_kind_are_refused() -> None:
    weights = handmade.induction_pair(11)
    with pytest.raises(ValueError, match="expected at least 1 rotation, got 0; give a whole number"):
        composition_scores(weights, 0, torch.Generator())
    with pytest.raises(ValueError, match="one of Q, K, V, got 'O'"):
        reader(weights.layers[1][0], "O")


@pytest.mark.parametrize("turned", ["heads", "embeddings"])
def test_weights_in_the_other_orientation_are_refused(turned: str) -> None:
    weights = handmade.random_weights(seed=0, n_layers=2)
    wrong = replace(weights, W_E=weights.W_E.mT, W_U=weights.W_U.mT)
    if turned == "heads":
        layers = [[Head(h.W_Q.mT, h.W_K.mT, h.W_V.mT, h.W_O.mT) for h in layer] for layer in weights.layers]
        wrong = replace(weights, layers=tuple(map(tuple, layers)))
    with pytest.raises(ValueError, match=r"head 0.0: expected W_Q, W_K and W_V of shape d_head × d_model"):
        composition_scores(wrong, 10, torch.Generator())


def test_a_direction_that_is_written_everywhere_composes_and_nothing_that_varies_does() -> None:
    """The constant write of a head, along u, is ten times its variation, along v. A late head reads u alone, or v
    alone."""
    Q = torch.linalg.qr(handmade.normal(torch.Generator().manual_seed(0), 13, 13)).Q
    u, v, nothing = Q[:, 0], Q[:, 1], torch.zeros(2, 13, dtype=Q.dtype)
    early = Head(nothing, nothing, Q[:, 2:4].mT, torch.stack([10 * u, v], 1))
    reads_u, reads_v = (Head(nothing, nothing, torch.stack([x, 0 * x]), Q[:, 4:6]) for x in (u, v))
    assert composition(early, reads_u, "V") == pytest.approx(10 / math.sqrt(101))
    assert composition(varying(early, 3 * u), reads_u, "V") == pytest.approx(0, abs=1e-12)
    assert composition(early, reads_v, "V") == pytest.approx(1 / math.sqrt(101))
    assert composition(varying(early, 3 * u), reads_v, "V") == pytest.approx(1)


def test_without_its_mean_write_a_head_writes_nothing_along_it_and_all_else_as_before() -> None:
    """Identity: u·W_O′ = 0 and W_O − W_O′ = u uᵀ W_O. Without a mean write, W_O′ = W_O."""
    g = torch.Generator().manual_seed(1)
    (head,) = handmade.random_weights(seed=3, n_layers=1, n_heads=1).layers[0]
    mean = handmade.normal(g, len(head.W_O))
    u, less = mean / mean.norm(), varying(head, mean)
    torch.testing.assert_close(u @ less.W_O, torch.zeros_like(u @ less.W_O), atol=1e-12, rtol=0)
    torch.testing.assert_close(head.W_O - less.W_O, torch.outer(u, u @ head.W_O), atol=1e-12, rtol=0)
    torch.testing.assert_close(varying(head, 0 * mean).W_O, head.W_O, atol=0, rtol=0)


def test_the_variance_of_writes_leaves_out_what_is_written_everywhere() -> None:
    g = torch.Generator().manual_seed(0)
    written = handmade.normal(g, 3, 5, 4).double()
    expected = (written - written.mean((0, 1))).square().sum(-1).mean().item()
    assert variance(written) == pytest.approx(expected, rel=1e-12)
    assert variance(written + 1e3) == pytest.approx(expected, rel=1e-8)
    assert variance(torch.ones(3, 5, 4)) == 0.0


def test_a_part_is_sized_against_an_average_part() -> None:
    sized = sizes(torch.tensor([4.0, 1.0, 1.0, 2.0], dtype=torch.float64))
    torch.testing.assert_close(sized, torch.tensor([2.0, 0.5, 0.5, 1.0], dtype=torch.float64).sqrt())
    assert sizes(torch.zeros(3)).tolist() == [0.0] * 3


def test_the_one_sided_p_value_counts_scores_as_high_or_higher() -> None:
    weights = handmade.induction_pair(11)
    for seed in range(3):
        for score in scores(handmade.random_weights(seed, n_layers=2, n_heads=1), seed).values():
            near = min(score.p_above, 1 + 1 / (1 + ROTATIONS) - score.p_above)
            assert score.p_value == pytest.approx(min(1.0, 2 * near), abs=1e-12)
    found = scores(weights)
    assert found["K"].p_above == 1 / (1 + ROTATIONS)
    assert found["Q"].p_above > 0.99


def test_writers_take_the_place_of_earlier_heads_alone() -> None:
    """The late head's own writes, which are also its R for V-composition, stay unchanged."""
    weights, writers = (handmade.random_weights(seed, n_layers=2, n_heads=1) for seed in (1, 2))
    (late,), (early,) = weights.layers[1], writers.layers[0]
    for score in composition_scores(weights, 11, torch.Generator().manual_seed(0), writers):
        assert score.value == pytest.approx(composition(early, late, score.kind), rel=1e-12)
        assert score.value != pytest.approx(composition(early, writers.layers[1][0], score.kind), rel=1e-3)
