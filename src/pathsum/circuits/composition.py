"""Q-, K- and V-composition between heads, against random rotations (AMF "three kinds of composition").

Norms are those of the products themselves, as in AMF's corrected figure, not of cyclic permutations.
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
    """Return the matrix with which a later head reads (docs/framework.md §4.1): W_QKᵀ for Q, W_QK for K, W_OV for V.
    ValueError on another kind."""
    if kind not in KINDS:
        raise ValueError(f"expected a kind of composition, one of {', '.join(KINDS)}, got {kind!r}")
    return {"Q": late.W_QK.mT, "K": late.W_QK, "V": late.W_OV}[kind]


def composition(early: Head, late: Head, kind: str) -> float:
    """Compute ‖R W_OV^early‖_F / (‖R‖_F ‖W_OV^early‖_F), R the ``reader`` of the later head (docs/framework.md §4.1).

    0..1; two isometries of rank r that fit perfectly reach 1/√r; 0 where a head is zero. Costs d_model · d_head²."""
    R, W_OV = reader(late, kind), early.W_OV
    size = R.norm() * W_OV.norm()
    return (R.after(W_OV).norm() / size).item() if size > 0 else 0.0


def varying(head: Head, mean_write: Float[Tensor, "d_model"]) -> Head:
    """Remove the direction u of the mean write from ``head``, which carries no information: (I − u uᵀ) W_O
    (docs/framework.md §4.4). The head itself where the mean is 0."""
    u = mean_write / mean_write.norm().clamp(min=torch.finfo(mean_write.dtype).tiny)
    return replace(head, W_O=head.W_O - torch.outer(u, u @ head.W_O))


def sizes(varied: Float[Tensor, "part"]) -> Float[Tensor, "part"]:
    """Compute the relative variation of each part of a residual stream: √(v_i / mean v), v the ``variance`` of each
    part (docs/framework.md §4.4). 1 where all vary equally, 0 for a constant part."""
    return (varied / varied.mean().clamp(min=torch.finfo(varied.dtype).tiny)).sqrt()


def variance(written: Float[Tensor, "batch pos d_model"]) -> float:
    """Compute the mean squared distance of writes from their mean, over all positions: E‖x‖² − ‖E x‖² ≥ 0."""
    mean = written.mean((0, 1), dtype=torch.float64)
    return max(0.0, (written.square().sum(-1).mean(dtype=torch.float64) - mean.square().sum()).item())


def composition_scores(
    weights: Weights, rotations: int, generator: torch.Generator, writers: Weights | None = None
) -> list[CompositionScore]:
    """Compute composition scores with p-values for every pair of heads in different layers and every kind
    (docs/framework.md §4.2 and §4.3).

    Earlier heads are those of ``writers`` where it is given, for example without their mean writes (``varying``). The
    same rotations serve every edge. A two-sided p is at least 2 / (1 + rotations), so Benjamini–Hochberg can call a
    single edge of n at 5 % only from 40 · n rotations on. Costs rotations · d_head² · (d_model + 4 · heads), and
    3 · rotations · H1 · H2 numbers. ValueError where ``rotations`` < 1."""
    if rotations < 1:
        raise ValueError(f"expected at least 1 rotation, got {rotations}; raise rotations")
    late_heads, early_heads = (
        {(layer, h): head for layer, row in enumerate(some.layers) for h, head in enumerate(row)}
        for some in (weights, writers or weights)
    )
    readers = [(kind, place) for kind in KINDS for place in late_heads if place[0] > 0]
    early_places = [place for place in early_heads if place[0] < len(weights.layers) - 1]
    if not early_places or not readers:
        return []
    d_model = weights.W_E.shape[0]
    read = spectra([reader(late_heads[place], kind) for kind, place in readers])
    written = spectra([early_heads[place].W_OV for place in early_places])
    null, floor = rotation_null(read, written, d_model, rotations, generator), min(1.0, 2 / (1 + rotations))
    scores = []
    for (i, (kind, late)), (j, early) in product(enumerate(readers), enumerate(early_places)):
        if early[0] < late[0]:
            value = composition(early_heads[early], late_heads[late], kind)
            p_values = _p_values(value**2, null[:, i, j])
            scores.append(CompositionScore(kind, early, late, value, 1 / math.sqrt(d_model), *p_values, floor))
    return scores


def benjamini_hochberg(p_values: Float[Tensor, "edge"]) -> Float[Tensor, "edge"]:
    """Compute Benjamini–Hochberg q-values, 0..1, in the order and dtype of ``p_values`` (docs/framework.md §10.4)."""
    order = p_values.argsort(descending=True)
    n = len(p_values)
    ranks = torch.arange(n, 0, -1, dtype=p_values.dtype, device=p_values.device)
    q = torch.empty_like(p_values)
    if n:
        q[order] = (p_values[order] * n / ranks).cummin(0).values
    return q


def spectra(matrices: list[LowRank]) -> Float[Tensor, "head rank"]:
    """Return the shares of the squared singular values, one row per matrix; zeros for a zero matrix."""
    squared = [W.singular_values().double().square() for W in matrices]
    return pad_sequence([s / s.sum().clamp(min=torch.finfo(s.dtype).tiny) for s in squared], batch_first=True)


def rotation_null(
    read: Float[Tensor, "late rank"],
    written: Float[Tensor, "early rank_"],
    d_model: int,
    rotations: int,
    generator: torch.Generator,
) -> Float[Tensor, "n late early"]:
    """Sample score² of every reader and writer, given their ``spectra``, under the same random rotations: pᵀ (M ∘ M)
    p′, with M the corner of a rotation that both spectra reach (docs/framework.md §4.2)."""
    n_read, n_written = read.shape[1], written.shape[1]
    draws = []
    for some in torch.arange(rotations).split(512):
        G = torch.randn(len(some), d_model, n_written, generator=generator, dtype=torch.float64).to(read.device)
        corner = _solve(torch.linalg.cholesky(G.mT @ G), G[:, :n_read].mT).mT  # Gram–Schmidt makes G a Haar frame
        draws.append(read @ corner.square() @ written.mT)
    return torch.cat(draws)


def _solve(triangle: Float[Tensor, "n rank rank"], B: Float[Tensor, "n rank top"]) -> Float[Tensor, "n rank top"]:
    """Compute triangle⁻¹ B by forward substitution for all draws at once. Takes 0.2 s for 1024 draws of rank 32, where
    torch, which solves one matrix at a time, takes 8 s."""
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
