"""OV circuits in tokens: groups of tokens that raise each other, and tokens read and written together.

Eigenvectors give the mixtures of tokens that a head maps onto themselves; singular vectors give the mixture that it
maps to another (AMF "copying: eigenvalue analysis").
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.qk_ov import ov_circuit
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Weights
from pathsum.statistics.rotation import random_rotation

_ROTATIONS = 20


@dataclass(frozen=True)
class Cluster:
    """Tokens that an OV circuit maps onto each other, those of largest weight first."""

    eigenvalue: float  # logits, real and positive
    tokens: Int[Tensor, "k"]
    cohesion: float  # mean logit that they add to each other, in standard deviations of the circuit's entries
    chance: float  # mean of the same in the head with randomly rotated writes
    spread: float  # standard deviation of the same


@dataclass(frozen=True)
class Direction:
    """One singular direction of W_OV: the tokens read along it, and those that it then raises."""

    gain: float  # singular value
    share: float  # of ‖W_OV‖²_F, 0..1
    read: Int[Tensor, "k"]
    written: Int[Tensor, "k"]


def token_clusters(
    weights: Weights, W_OV: LowRank, sources: Int[Tensor, "source"], vectors: int, k: int, generator: torch.Generator
) -> list[Cluster]:
    """Return the groups of tokens that a head copies: the ``k`` of ``sources`` with the largest weight in each of the
    leading real positive eigenvectors of W_U W_OV W_E (docs/framework.md §3.11).

    An eigenvector of a matrix that is not normal need not be a group, so each has a cohesion and its chance level under
    20 random rotations. Fewer than ``vectors`` where fewer eigenvalues are real and positive. Costs 21 · d_vocab
    · d_model · d_head, in float64. ValueError where there are not ``k`` sources, or ``k`` < 2."""
    _check(sources, k, least=2)
    exact, W_OV = weights.to(torch.float64), LowRank(W_OV.left.double(), W_OV.right.double())
    rotations = [random_rotation(len(W_OV.left), generator) for _ in range(_ROTATIONS)]
    rotated = (_groups(ov_circuit(exact, W_OV.then(rotation)), sources, vectors, k) for rotation in rotations)
    null = torch.tensor([cohesion for groups in rotated for _, _, cohesion in groups])
    chance, spread = (null.mean().item(), null.std().item()) if len(null) > 1 else (0.0, 0.0)
    return [Cluster(*group, chance, spread) for group in _groups(ov_circuit(exact, W_OV), sources, vectors, k)]


def singular_directions(
    weights: Weights, W_OV: LowRank, sources: Int[Tensor, "source"], directions: int, k: int
) -> list[Direction]:
    """Return the leading singular directions of W_OV, read through W_E and written through W_U (docs/framework.md
    §3.12): at both ends the ``k`` of ``sources`` with the largest entries above the mean, with the sign of the token
    that is read most. None for a zero head. Costs d_vocab · d_model · directions. ValueError without ``k`` sources."""
    _check(sources, k, least=1)
    U, S, V_T = W_OV.svd()
    read = V_T[:directions] @ weights.W_E[:, sources]
    read = read - read.mean(-1, keepdim=True)
    written = (weights.W_U - weights.W_U.mean(0))[sources] @ U[:, :directions]
    energy = (S.square() / S.square().sum().clamp(min=torch.finfo(S.dtype).tiny)).tolist()
    found = []
    for i in (S[:directions] > 0).nonzero().flatten().tolist():
        ends = [sources[(_sign(read[i]) * end).topk(k).indices] for end in (read[i], written[:, i])]
        found.append(Direction(S[i].item(), energy[i], *ends))
    return found


def _groups(
    circuit: LowRank, sources: Int[Tensor, "source"], vectors: int, k: int
) -> list[tuple[float, Tensor, float]]:
    """Return eigenvalue, tokens and cohesion of each leading real positive eigenvector."""
    values, small = torch.linalg.eig(circuit.right @ circuit.left)
    copied = ((values.imag == 0) & (values.real > 0)).nonzero().squeeze(-1)
    found = []
    for i in copied[values.real[copied].argsort(descending=True)][:vectors].tolist():
        weight = circuit.left[sources] @ small[:, i].real
        tokens = sources[(_sign(weight) * weight).topk(k).indices]
        among = circuit.left[tokens] @ circuit.right[:, tokens]
        mutual = (among.sum() - among.trace()).item() / (k * (k - 1))
        deviation = circuit.norm().item() / (circuit.shape[0] * circuit.shape[1]) ** 0.5  # about a mean of 0
        found.append((values[i].real.item(), tokens, mutual / deviation))
    return found


def _sign(weight: Float[Tensor, "source"]) -> float:
    """Return the sign of the largest entry."""
    return 1.0 if weight.max() >= -weight.min() else -1.0


def _check(sources: Tensor, k: int, least: int) -> None:
    if not least <= k <= len(sources):
        raise ValueError(f"expected to name {least} to {len(sources)} tokens, one of each source at most, got k = {k}")
