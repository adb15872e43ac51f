"""Q-, K- and V-composition between heads, against random rotations (AMF "three kinds of composition").

Written as AMF's corrected figure: norms of the products themselves, never after a cyclic permutation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, product

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.lowrank import LowRank
from pathsum.circuits.weights import Head, Weights

KINDS = ("Q", "K", "V")
FEWEST_ROTATIONS = 100
RESOLVED = 10  # draws beyond the score from which their count is a good p-value: its error is then under a third


@dataclass(frozen=True)
class CompositionScore:
    """How much a later head reads of what an earlier one writes."""

    kind: str  # Q, K or V
    early: tuple[int, int]  # (layer, head)
    late: tuple[int, int]
    value: float  # 0..1
    chance: float  # root mean square under random rotations, 1/√d_model
    p_value: float  # two-sided


def reader(late: Head, kind: str) -> LowRank:
    """The matrix with which a later head reads: W_QKᵀ for Q, W_QK for K, W_OV for V. ValueError on another kind."""
    if kind not in KINDS:
        raise ValueError(f"expected a kind of composition, one of {', '.join(KINDS)}, got {kind!r}")
    return {"Q": late.W_QK.mT, "K": late.W_QK, "V": late.W_OV}[kind]


def composition(early: Head, late: Head, kind: str) -> float:
    """How much of what ``early`` writes does ``late`` read? ‖R W_OV^early‖_F / (‖R‖_F ‖W_OV^early‖_F) with R the
    ``reader`` (AMF "three kinds of composition"; ‖W_QKᵀ W_OV‖ = ‖W_OVᵀ W_QK‖).

    0..1, where heads that fit perfectly by isometries of rank r reach 1/√r; 0 where a head is zero. The later head
    stands on the left. Costs d_model · d_head².
    """
    R, W_OV = reader(late, kind), early.W_OV
    size = R.norm() * W_OV.norm()
    return (R.after(W_OV).norm() / size).item() if size > 0 else 0.0


def composition_scores(weights: Weights, rotations: int, generator: torch.Generator) -> list[CompositionScore]:
    """Which heads compose beyond chance? FRAMEWORK §4, over every pair of heads in different layers.

    The null keeps both heads' singular values and turns one against the other at random. E[score²] is then 1/d_model
    exactly, and score² is pᵀ (C ∘ C) p′, for p and p′ the shares of squared singular values and C the corner of a Haar
    rotation, so that one set of rotations serves every edge. p counts draws on the nearer side, twice
    (1 + count) / (1 + rotations); where fewer than RESOLVED lie beyond, so that the smallest p would be too coarse for
    Benjamini–Hochberg, it is the normal tail of score^⅔ (Wilson–Hilferty: the cube root of a squared norm is nearly
    normal), with the draws' mean and deviation.

    Costs rotations · d_model · d_head² once and rotations · d_head² an edge. ValueError on too few rotations.
    """
    if rotations < FEWEST_ROTATIONS:
        raise ValueError(f"expected at least {FEWEST_ROTATIONS} rotations, got {rotations}; raise extract.rotations")
    places = [(layer, head) for layer, heads in enumerate(weights.layers) for head in range(len(heads))]
    edges = [(early, late) for early, late in combinations(places, 2) if early[0] < late[0]]
    if not edges:
        return []
    d_model = weights.W_E.shape[0]
    heads = {(layer, head): weights.layers[layer][head] for layer, head in places}
    written = {place: _spectrum(head.W_OV) for place, head in heads.items()}
    read = {(place, kind): _spectrum(reader(head, kind)) for place, head in heads.items() for kind in KINDS}
    width = max(len(spectrum) for spectrum in (*written.values(), *read.values()))
    corners = _squared_corners(rotations, d_model, width, generator).to(weights.W_E)

    scores = []
    for kind, (early, late) in product(KINDS, edges):
        value = composition(heads[early], heads[late], kind)
        p, p_ = read[late, kind], written[early]
        null = torch.einsum("i,nij,j->n", p, corners[:, : len(p), : len(p_)], p_)
        scores.append(CompositionScore(kind, early, late, value, 1 / math.sqrt(d_model), _p_value(value**2, null)))
    return scores


def benjamini_hochberg(p_values: Float[Tensor, "edge"]) -> Float[Tensor, "edge"]:
    """How large a share of false discoveries would come with each edge? Benjamini–Hochberg q-values, 0..1, in the
    order given: q_(i) = min over j ≥ i of p_(j) · n / j."""
    order = p_values.argsort(descending=True)
    n = len(p_values)
    ranks = torch.arange(n, 0, -1, dtype=p_values.dtype, device=p_values.device)
    q = torch.empty_like(p_values)
    if n:
        q[order] = (p_values[order] * n / ranks).cummin(0).values
    return q


def _spectrum(W: LowRank) -> Float[Tensor, "rank"]:
    """Shares of the squared singular values; zeros for a zero matrix."""
    squared = W.singular_values().square()
    return squared / squared.sum().clamp(min=torch.finfo(squared.dtype).tiny)


def _squared_corners(n: int, d_model: int, width: int, generator: torch.Generator) -> Float[Tensor, "n rank rank"]:
    """Squared entries of the first ``width`` rows and columns of ``n`` Haar rotations. The signs that a QR
    decomposition leaves to convention vanish in the squares."""
    corners = [
        torch.linalg.qr(torch.randn(len(some), d_model, width, generator=generator, dtype=torch.float64)).Q[:, :width]
        for some in torch.arange(n).split(256)
    ]
    return torch.cat(corners).square()


def _p_value(squared: float, null: Float[Tensor, "n"]) -> float:
    n = len(null)
    beyond = min(int((null >= squared).sum()), int((null <= squared).sum()))
    if beyond >= RESOLVED:
        return min(1.0, 2 * (1 + beyond) / (1 + n))
    roots = null.double().pow(1 / 3)
    z = (squared ** (1 / 3) - roots.mean().item()) / roots.std().item()
    return math.erfc(abs(z) / math.sqrt(2))
