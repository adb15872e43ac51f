"""Q-, K- and V-composition between heads, against random rotations (AMF "three kinds of composition").

As in AMF's corrected figure: norms of the products themselves, not of cyclic permutations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights

KINDS = ("Q", "K", "V")
ROUNDING = 1e-5  # relative, of a score² in float32: draws this close count as ties, on both sides


@dataclass(frozen=True)
class CompositionScore:
    """The composition score of two heads."""

    kind: str  # Q, K or V
    early: tuple[int, int]  # (layer, head)
    late: tuple[int, int]
    value: float  # 0..1
    chance: float  # root mean square under random rotations, 1/√d_model
    p_value: float  # two-sided
    p_above: float  # one-sided: of a score as high or higher
    p_floor: float  # of as many rotations: 2 / (1 + rotations)


def reader(late: Head, kind: str) -> LowRank:
    """Return the matrix with which a later head reads: W_QKᵀ for Q, W_QK for K, W_OV for V. ValueError on another
    kind."""
    if kind not in KINDS:
        raise ValueError(f"expected a kind of composition, one of {', '.join(KINDS)}, got {kind!r}")
    return {"Q": late.W_QK.mT, "K": late.W_QK, "V": late.W_OV}[kind]


def composition(early: Head, late: Head, kind: str) -> float:
    """Compute the composition score ‖R W_OV^early‖_F / (‖R‖_F ‖W_OV^early‖_F) with R the
    ``reader`` (AMF "three kinds of composition"; ‖W_QKᵀ W_OV‖ = ‖W_OVᵀ W_QK‖).

    0..1, where heads that fit perfectly by isometries of rank r reach 1/√r; 0 where a head is zero. The later head
    stands on the left. Costs d_model · d_head².
    """
    R, W_OV = reader(late, kind), early.W_OV
    size = R.norm() * W_OV.norm()
    return (R.after(W_OV).norm() / size).item() if size > 0 else 0.0


def varying(head: Head, mean_write: Float[Tensor, "d_model"]) -> Head:
    """Remove the direction of the mean write from ``head``: (I − u uᵀ) W_O with u = mean write / its norm.

    A constant write carries no information, whatever its share of ‖W_OV‖. The head itself where the mean is 0."""
    u = mean_write / mean_write.norm().clamp(min=torch.finfo(mean_write.dtype).tiny)
    return replace(head, W_O=head.W_O - torch.outer(u, u @ head.W_O))


def sizes(varied: Float[Tensor, "part"]) -> Float[Tensor, "part"]:
    """Compute the relative variation of each part of a residual stream: √(v_i / mean v), with v_i the mean squared
    distance of part i from its mean (``variance``); 1 where all vary equally, 0 for a constant part.

    A composition score ignores the norm of writes: a head with small variation gives a later head little information,
    however well the two are aligned. Zeros where nothing varies."""
    return (varied / varied.mean().clamp(min=torch.finfo(varied.dtype).tiny)).sqrt()


def variance(written: Float[Tensor, "batch pos d_model"]) -> float:
    """Compute the mean squared distance of writes from their mean, over all positions: E‖x‖² − ‖E x‖² ≥ 0."""
    mean = written.mean((0, 1), dtype=torch.float64)
    return max(0.0, (written.square().sum(-1).mean(dtype=torch.float64) - mean.square().sum()).item())


def composition_scores(
    weights: Weights, rotations: int, generator: torch.Generator, writers: Weights | None = None
) -> list[CompositionScore]:
    """Compute composition scores with p-values for every pair of heads in different layers and every kind,
    docs/framework.md §4.3.

    The null keeps the singular values of both heads and rotates one against the other at random; E[score²] is then
    exactly 1/d_model for any spectra. p is twice the share of rotations on the nearer side, (1 + count) / (1 +
    rotations): valid at any number of rotations, but at least 2 / (1 + rotations), so that Benjamini–Hochberg can call
    a single edge of n at 5 % only from 40 · n rotations on. (Normal tails beyond the draws make p several times too
    small where one singular value dominates.) Earlier heads are those of ``writers`` where it is given, for example
    without their mean writes (``varying``). The same rotations serve every edge.

    Costs rotations · d_head² · (d_model + 4 · heads), and 3 · rotations · H1 · H2 numbers. ValueError where
    ``rotations`` < 1.
    """
    if rotations < 1:
        raise ValueError(f"expected at least 1 rotation, got {rotations}; raise rotations")
    heads = {(layer, h): head for layer, row in enumerate(weights.layers) for h, head in enumerate(row)}
    writing = {
        (layer, h): head for layer, row in enumerate((writers or weights).layers[:-1]) for h, head in enumerate(row)
    }
    readers = [(kind, place) for kind in KINDS for place in heads if place[0] > 0]
    if not writing or not readers:
        return []
    d_model = weights.W_E.shape[0]
    read = _spectra([reader(heads[place], kind) for kind, place in readers])
    written = _spectra([head.W_OV for head in writing.values()])
    null = _null(read, written, d_model, rotations, generator)
    scores = []
    for (i, (kind, late)), (j, early) in product(enumerate(readers), enumerate(writing)):
        if early[0] < late[0]:
            value = composition(writing[early], heads[late], kind)
            p_values = _p_values(value**2, null[:, i, j])
            floor = min(1.0, 2 / (1 + rotations))
            scores.append(CompositionScore(kind, early, late, value, 1 / math.sqrt(d_model), *p_values, floor))
    return scores


def benjamini_hochberg(p_values: Float[Tensor, "edge"]) -> Float[Tensor, "edge"]:
    """Compute Benjamini–Hochberg q-values, 0..1, in the order given and the dtype of ``p_values``: q_(i) = min over j ≥
    i of p_(j) · n / j."""
    order = p_values.argsort(descending=True)
    n = len(p_values)
    ranks = torch.arange(n, 0, -1, dtype=p_values.dtype, device=p_values.device)
    q = torch.empty_like(p_values)
    if n:
        q[order] = (p_values[order] * n / ranks).cummin(0).values
    return q


def _spectra(matrices: list[LowRank]) -> Float[Tensor, "head rank"]:
    """Return the shares of the squared singular values, one row per matrix; zeros for a zero matrix."""
    squared = [W.singular_values().double().square() for W in matrices]
    return pad_sequence([s / s.sum().clamp(min=torch.finfo(s.dtype).tiny) for s in squared], batch_first=True)


def _null(
    read: Float[Tensor, "late rank"],
    written: Float[Tensor, "early rank_"],
    d_model: int,
    rotations: int,
    generator: torch.Generator,
) -> Float[Tensor, "n late early"]:
    """Sample score² of every reader and writer under the same random rotations: pᵀ (C ∘ C) p′, with C the corner of a
    rotation that both spectra reach."""
    n_read, n_written = read.shape[1], written.shape[1]
    draws = []
    for some in torch.arange(rotations).split(512):
        G = torch.randn(len(some), d_model, n_written, generator=generator, dtype=torch.float64).to(read.device)
        corner = _solve(torch.linalg.cholesky(G.mT @ G), G[:, :n_read].mT).mT  # Gram–Schmidt makes G a Haar frame
        draws.append(read @ corner.square() @ written.mT)
    return torch.cat(draws)


def _solve(triangle: Float[Tensor, "n rank rank"], B: Float[Tensor, "n rank top"]) -> Float[Tensor, "n rank top"]:
    """Compute triangle⁻¹ B by forward substitution for all draws at once: 0.2 s on two busy cores for 1024 draws of
    rank 32, where torch, which solves or decomposes one matrix at a time, takes 8 s."""
    X = torch.empty_like(B, memory_format=torch.contiguous_format)
    for i in range(triangle.shape[1]):
        row = slice(i, i + 1)
        X[:, row] = (B[:, row] - triangle[:, row, :i] @ X[:, :i]) / triangle[:, row, row]
    return X


def _p_values(squared: float, null: Float[Tensor, "n"]) -> tuple[float, float]:
    """Return the two-sided p-value, and that of a score as high or higher."""
    above, below = int((null >= squared * (1 - ROUNDING)).sum()), int((null <= squared * (1 + ROUNDING)).sum())
    of = 1 + len(null)
    return min(1.0, 2 * (1 + min(above, below)) / of), (1 + above) / of
