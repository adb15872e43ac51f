"""Compute Q-, K- and V-composition scores of pairs of heads, and their random-rotation null (docs/framework.md §4).

As in the corrected figure of A Mathematical Framework for Transformer Circuits (AMF), the norm is that of the product
itself, not of a cyclic permutation of its factors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pathsum.circuits.precision import finite, scaled, unit
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights

KINDS = ("Q", "K", "V")
ROUNDING = 1e-5  # relative error of score² in float32; a draw this close to the score counts as both above and below


@dataclass(frozen=True)
class CompositionScore:
    """The composition score of an edge: from an earlier head to the queries, keys or values of a later head."""

    kind: str  # Q, K or V
    early: tuple[int, int]  # (layer, head)
    late: tuple[int, int]
    value: float  # 0..1
    chance: float  # root mean square under random rotations, 1/√d_model
    p_value: float  # two-sided, under random rotations
    p_above: float  # one-sided: probability of a score as high or higher under the null
    p_floor: float  # smallest possible ``p_value``: 2 / (1 + rotations)


def reader(late: Head, kind: str) -> LowRank:
    """Return the matrix with which the ``late`` head reads (docs/framework.md §4.1): W_QKᵀ for its queries (``kind``
    Q), W_QK for its keys (K), W_OV for its values (V). ValueError for another kind."""
    if kind not in KINDS:
        raise ValueError(f"expected a kind of composition, one of {', '.join(KINDS)}, got {kind!r}")
    return {"Q": late.W_QK.mT, "K": late.W_QK, "V": late.W_OV}[kind]


def composition(early: Head, late: Head, kind: str) -> float:
    """Return the composition score ‖R W_OV^early‖_F / (‖R‖_F ‖W_OV^early‖_F), with R the ``reader`` of the late head.

    0..1, and 0 if R or W_OV^early is zero. If both are partial isometries of rank r, and R reads exactly the subspace
    that W_OV^early writes, the score is 1/√r. It does not depend on the scale of the weights. ValueError for an unknown
    ``kind``, or for weights with NaN or infinity. See docs/framework.md §4.1."""
    R, W_OV = unit(reader(late, kind)), unit(early.W_OV)
    size = R.norm() * W_OV.norm()
    return (R.after(W_OV).norm() / size).item() if size > 0 else 0.0


def varying(head: Head, mean_write: Float[Tensor, "d_model"]) -> Head:
    """Return the head without the direction u of its mean write: W_O becomes (I − u uᵀ) W_O.

    A write that is the same at every position gives later heads no information. If the mean write is 0, the head is
    returned unchanged. See docs/framework.md §4.4."""
    (mean, _), W_O = scaled(mean_write, "mean writes"), finite(head.W_O)
    u = mean / mean.norm().clamp(min=torch.finfo(mean.dtype).tiny)
    return replace(head, W_O=W_O - torch.outer(u, u @ W_O))


def sizes(varied: Float[Tensor, "part"]) -> Float[Tensor, "part"]:
    """Return how much each part of a residual stream varies, relative to the average part: √(v_i / mean v).

    ``varied`` holds v_i, the ``variance`` of each part. The result is 1 for all parts if they vary equally, and 0 for a
    constant part. See docs/framework.md §4.4."""
    varied, _ = scaled(varied, "variances")
    return (varied / varied.mean().clamp(min=torch.finfo(varied.dtype).tiny)).sqrt()


def variance(written: Float[Tensor, "batch pos d_model"]) -> float:
    """Return the variance of writes over windows and positions, E‖x‖² − ‖E x‖² ≥ 0, in squared units of the residual
    stream."""
    x, n = scaled(written, "writes")
    mean = x.mean((0, 1), dtype=torch.float64)
    return max(0.0, (x.square().sum(-1).mean(dtype=torch.float64) - mean.square().sum()).item()) * 4.0**n


def composition_scores(
    weights: Weights, rotations: int, generator: torch.Generator, writers: Weights | None = None
) -> list[CompositionScore]:
    """Return the composition scores of all edges with their p-values (docs/framework.md §4.2 and §4.3).

    An edge is a pair of heads in different layers and a kind (Q, K or V); there is none with fewer than two layers. If
    ``writers`` is given, the early heads are taken from it; it has as many heads per layer as ``weights``. All edges
    share the same rotations. The two-sided p is at least 2 / (1 + rotations). So if only one of n edges composes,
    Benjamini–Hochberg at 5 % needs at least 40 · n − 1 rotations to accept it. For H1 early and H2 late heads, costs
    about rotations · d_head · (d_head · (d_model + 3 · H2) + 3 · H1 · H2) operations, and 3 · rotations · H1 · H2
    numbers of memory. ValueError as in ``scores_of_writers``."""
    (scores,) = scores_of_writers(weights, [writers or weights], rotations, generator)
    return scores


def scores_of_writers(
    weights: Weights, writers: Sequence[Weights], rotations: int, generator: torch.Generator
) -> list[list[CompositionScore]]:
    """Return the ``composition_scores`` for the early heads of each of ``writers``. All share the same random
    rotations.

    Each of ``writers`` has as many heads per layer as ``weights``. The lists are empty with fewer than two layers.
    ValueError if ``rotations`` is not a whole number ≥ 1, if the matrices of a head do not act on column vectors of
    d_model entries, or if they have NaN or infinity."""
    if not isinstance(rotations, int) or rotations < 1:
        raise ValueError(f"expected at least 1 rotation, got {rotations}; give a whole number")
    for w in (weights, *writers):
        _require_shapes(w)
    late_heads = _heads(weights)
    readers = [(kind, place) for kind in KINDS for place in late_heads if place[0] > 0]
    early_heads = [{p: head for p, head in _heads(w).items() if p[0] < len(weights.layers) - 1} for w in writers]
    if not any(early_heads) or not readers:
        return [[] for _ in writers]
    d_model, early_places = weights.W_E.shape[0], list(early_heads[0])
    read = spectra([reader(late_heads[place], kind) for kind, place in readers])
    written = spectra([heads[place].W_OV for heads in early_heads for place in early_places])
    null, floor = rotation_null(read, written, d_model, rotations, generator), min(1.0, 2 / (1 + rotations))
    found = []
    for heads, draws in zip(early_heads, null.split(len(early_places), -1), strict=True):
        scores = []
        for (i, (kind, late)), (j, early) in product(enumerate(readers), enumerate(early_places)):
            if early[0] < late[0]:
                value = composition(heads[early], late_heads[late], kind)
                p_values = _p_values(value**2, draws[:, i, j])
                scores.append(CompositionScore(kind, early, late, value, 1 / math.sqrt(d_model), *p_values, floor))
        found.append(scores)
    return found


def _heads(weights: Weights) -> dict[tuple[int, int], Head]:
    return {(layer, h): head for layer, row in enumerate(weights.layers) for h, head in enumerate(row)}


def _require_shapes(weights: Weights) -> None:
    """Raise ValueError for a head whose matrices do not act on column vectors of d_model entries."""
    d_model = weights.W_E.shape[0]
    for (layer, h), head in _heads(weights).items():
        shapes = [list(W.shape) for W in (head.W_Q, head.W_K, head.W_V, head.W_O)]
        if [n for *_, n in shapes[:3]] + shapes[3][:1] != [d_model] * 4:
            raise ValueError(
                f"head {layer}.{h}: expected W_Q, W_K and W_V of shape d_head × d_model and W_O of shape d_model × "
                f"d_head, with d_model = {d_model} rows of W_E, got {shapes}; transpose them (columns are vectors)"
            )


def benjamini_hochberg(p_values: Float[Tensor, "edge"]) -> Float[Tensor, "edge"]:
    """Return the Benjamini–Hochberg q-values of ``p_values``, in the same order and dtype (docs/framework.md §10.4).
    0..1. ValueError for NaN."""
    finite(p_values, "p-values")
    order = p_values.argsort(descending=True)
    n = len(p_values)
    ranks = torch.arange(n, 0, -1, dtype=p_values.dtype, device=p_values.device)
    q = torch.empty_like(p_values)
    if n:
        q[order] = (p_values[order] * n / ranks).cummin(0).values
    return q


def spectra(matrices: list[LowRank]) -> Float[Tensor, "head rank"]:
    """Return the squared singular values of each matrix, divided by their sum: one row per matrix.

    Rows are padded with zeros to the largest rank. The row of a zero matrix is zero."""
    squared = [unit(W).singular_values().double().square() for W in matrices]
    return pad_sequence([s / s.sum().clamp(min=torch.finfo(s.dtype).tiny) for s in squared], batch_first=True)


def rotation_null(
    read: Float[Tensor, "late rank"],
    written: Float[Tensor, "early rank_"],
    d_model: int,
    rotations: int,
    generator: torch.Generator,
) -> Float[Tensor, "n late early"]:
    """Sample score² of every pair of a reading and a writing matrix under random rotations, which all pairs share.

    ``read`` and ``written`` come from ``spectra``. A row p of ``read`` belongs to a reading matrix, and a row p′ of
    ``written`` to a writing matrix. Each of the n = ``rotations`` draws is pᵀ (M ∘ M) p′, with M the r × r′ corner of a
    random rotation. In 0..1, float64. See docs/framework.md §4.2."""
    n_read, n_written = read.shape[1], written.shape[1]
    draws = []
    for some in torch.arange(rotations).split(512):
        G = torch.randn(len(some), d_model, n_written, generator=generator, dtype=torch.float64).to(read.device)
        corner = _solve(torch.linalg.cholesky(G.mT @ G), G[:, :n_read].mT).mT  # Gram–Schmidt makes G a Haar frame
        draws.append(read @ corner.square() @ written.mT)
    return torch.cat(draws)


def _solve(triangle: Float[Tensor, "n rank rank"], B: Float[Tensor, "n rank top"]) -> Float[Tensor, "n rank top"]:
    """Return triangle⁻¹ B for lower triangular matrices, by forward substitution for all draws at once."""
    X = torch.empty_like(B, memory_format=torch.contiguous_format)
    for i in range(triangle.shape[1]):
        row = slice(i, i + 1)
        X[:, row] = (B[:, row] - triangle[:, row, :i] @ X[:, :i]) / triangle[:, row, row]
    return X


def _p_values(squared: float, null: Float[Tensor, "n"]) -> tuple[float, float]:
    """Return the two-sided and the upper one-sided p-value of the score² ``squared`` under the sampled ``null``
    (docs/framework.md §4.3)."""
    above, below = int((null >= squared * (1 - ROUNDING)).sum()), int((null <= squared * (1 + ROUNDING)).sum())
    of = 1 + len(null)
    return min(1.0, 2 * (1 + min(above, below)) / of), (1 + above) / of
