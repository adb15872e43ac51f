"""Describe an OV (output-value) circuit by groups of tokens: those of one eigenvector, and those that are read and
written along one singular direction (docs/framework.md §3.11 and §3.12).

Scale the columns of ``W_E`` first, as in ``qk_ov``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.precision import checked, finite, scaled
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Weights
from pathsum.statistics.rotation import random_rotation

_ROTATIONS = 20


@dataclass(frozen=True)
class Cluster:
    """The tokens of largest weight in one eigenvector of an OV circuit, largest first."""

    eigenvalue: float  # logits, real and positive
    tokens: Int[Tensor, "k"]
    cohesion: float  # mean entry between two different tokens of the group, in standard deviations of all entries
    chance: float  # mean cohesion under random rotations of the head's writes; 0 if they give fewer than two groups
    spread: float  # standard deviation of the cohesion under these rotations; 0 likewise


@dataclass(frozen=True)
class Direction:
    """One singular direction of W_OV: the tokens that are read along it, and the tokens that are then raised."""

    gain: float  # singular value σ_i
    share: float  # σ_i² / Σ σ², 0..1
    read: Int[Tensor, "k"]
    written: Int[Tensor, "k"]


@dataclass(frozen=True)
class _Ends:
    """What the circuits W_U W_OV W_E of all heads have in common; ``W_U`` is centered over the vocabulary."""

    sources: Int[Tensor, "source"]
    read: Float[Tensor, "d_model source"]  # W_E of the sources
    written: Float[Tensor, "source d_model"]  # W_U of the sources
    through: Float[Tensor, "d_model d_model"]  # W_E W_U
    reads: Float[Tensor, "d_model d_model"]  # W_E W_Eᵀ
    writes: Float[Tensor, "d_model d_model"]  # W_Uᵀ W_U
    d_vocab: int

    @staticmethod
    def of(weights: Weights, sources: Int[Tensor, "source"]) -> "_Ends":
        W_E, W_U = finite(weights.W_E.double()), finite(weights.W_U.double())
        W_U = W_U - W_U.mean(0)
        return _Ends(sources, W_E[:, sources], W_U[sources], W_E @ W_U, W_E @ W_E.mT, W_U.mT @ W_U, len(W_U))


def token_clusters(
    weights: Weights,
    W_OVs: Sequence[LowRank],
    sources: Int[Tensor, "source"],
    vectors: int,
    k: int,
    generator: torch.Generator,
) -> list[list[Cluster]]:
    """Return, for each of ``W_OVs``, the groups of tokens that the head copies, from the eigenvectors of the OV circuit
    (``ov_circuit``) with the largest real positive eigenvalues.

    There are at most ``vectors`` groups, the one of the largest eigenvalue first, and none without such an eigenvalue.
    A group consists of the ``k`` tokens of ``sources`` (ids) with the largest weight in one eigenvector, whose largest
    absolute weight is made positive. The circuit is not a normal matrix, so these tokens need not raise each other.
    Each group therefore has a cohesion; all share one chance level, from 20 random rotations of the writes. ValueError
    if ``k`` < 2 or there are fewer than ``k`` sources, or for weights with NaN or infinity. See docs/framework.md
    §3.11."""
    _check(sources, k, least=2)
    ends, found = _Ends.of(weights, sources), []
    for W_OV in W_OVs:
        W_OV = checked(LowRank(W_OV.left.double(), W_OV.right.double()))
        rotations = (random_rotation(len(W_OV.left), generator) for _ in range(_ROTATIONS))
        rotated = (_groups(ends, W_OV.then(rotation), vectors, k) for rotation in rotations)
        null = torch.tensor([cohesion for groups in rotated for _, _, cohesion in groups])
        chance, spread = (null.mean().item(), null.std().item()) if len(null) > 1 else (0.0, 0.0)
        found.append([Cluster(*group, chance, spread) for group in _groups(ends, W_OV, vectors, k)])
    return found


def singular_directions(
    weights: Weights, W_OV: LowRank, sources: Int[Tensor, "source"], directions: int, k: int
) -> list[Direction]:
    """Return the leading singular directions of W_OV, with the tokens that are read and written along each.

    These are the ``k`` tokens of ``sources`` (ids) with the largest entries of v_iᵀ W_E (read) and of W_U u_i
    (written). The mean is subtracted from each: over ``sources`` for the first, over the vocabulary for the second. The
    sign of u_i and v_i is such that, after this, the largest absolute entry of v_iᵀ W_E is positive. Returns at most
    ``directions`` entries, the largest singular value first, and none for a zero head. ValueError unless ``k`` is from
    1 to the number of sources, or for weights with NaN or infinity. See docs/framework.md §3.12."""
    _check(sources, k, least=1)
    (left, n), (right, m), W_U = scaled(W_OV.left), scaled(W_OV.right), finite(weights.W_U)
    U, S, V_T = LowRank(left, right).svd()
    read = V_T[:directions] @ finite(weights.W_E)[:, sources]
    read = read - read.mean(-1, keepdim=True)
    written = (W_U - W_U.mean(0))[sources] @ U[:, :directions]
    energy = (S.square() / S.square().sum().clamp(min=torch.finfo(S.dtype).tiny)).tolist()
    found = []
    for i in (S[:directions] > 0).nonzero().flatten().tolist():
        ends = [sources[(_sign(read[i]) * end).topk(k).indices] for end in (read[i], written[:, i])]
        found.append(Direction(S[i].item() * 2.0 ** (n + m), energy[i], *ends))
    return found


def _groups(ends: _Ends, W_OV: LowRank, vectors: int, k: int) -> list[tuple[float, Tensor, float]]:
    """Return the eigenvalue, the tokens and the cohesion for each of the largest real positive eigenvalues. Costs no
    product over the vocabulary."""
    values, small = torch.linalg.eig(W_OV.right @ ends.through @ W_OV.left)
    energy = (W_OV.left.mT @ ends.writes @ W_OV.left) * (W_OV.right @ ends.reads @ W_OV.right.mT).mT
    deviation = energy.sum().clamp(min=0).sqrt().item() / ends.d_vocab  # the mean of all entries is 0
    copied = ((values.imag == 0) & (values.real > 0)).nonzero().squeeze(-1)
    found = []
    for i in copied[values.real[copied].argsort(descending=True)][:vectors].tolist():
        weight = ends.written @ (W_OV.left @ small[:, i].real)
        best = (_sign(weight) * weight).topk(k).indices
        among = (ends.written[best] @ W_OV.left) @ (W_OV.right @ ends.read[:, best])
        mutual = (among.sum() - among.trace()).item() / (k * (k - 1))
        found.append((values[i].real.item(), ends.sources[best], mutual / deviation))
    return found


def _sign(weight: Float[Tensor, "source"]) -> float:
    """Return the sign of the entry of largest size, 1 or −1."""
    return 1.0 if weight.max() >= -weight.min() else -1.0


def _check(sources: Tensor, k: int, least: int) -> None:
    if not least <= k <= len(sources):
        raise ValueError(f"expected k from {least} to the number of source tokens, {len(sources)}, got k = {k}")
