"""Bandwidth of the residual stream: the directions that each head uses, and the overlap of writes and reads
(AMF "subspaces and residual stream bandwidth")."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from pathsum.circuits.composition import KINDS, reader
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights


@dataclass(frozen=True)
class Overlap:
    """The share of an earlier head's write in the subspace that a later head reads."""

    kind: str  # Q, K or V: which of its readers
    early: tuple[int, int]  # (layer, head)
    late: tuple[int, int]
    share: float  # of the squared norm of what is written, 0..1
    chance: float  # mean under random rotations: the share of all directions that is read
    spread: float  # standard deviation under random rotations


def effective_rank(W: LowRank) -> float:
    """Compute the participation ratio of the singular values, (Σ s²)² / Σ s⁴ (docs/framework.md §3.15). 1..rank
    directions; 0 for a zero matrix. Costs d_model · rank²."""
    squared = W.singular_values().double().square()
    total = squared.sum().item()
    return total**2 / squared.square().sum().item() if total > 0 else 0.0


def overlap(early: Head, late: Head, kind: str) -> tuple[float, float, float]:
    """Compute ‖P W_OV^early‖²_F / ‖W_OV^early‖²_F, P the projection onto the row space of the later head's ``reader``,
    and its exact mean and standard deviation under random rotations (docs/framework.md §3.15).

    0..1. Composition weights directions by how strongly they are read; this does not. (0, 0, 0) where either head is
    zero. Costs d_model · d_head²."""
    _, gains, read = reader(late, kind).svd()
    U, S, _ = early.W_OV.svd()
    read = read[gains > gains.max() * torch.finfo(gains.dtype).eps * read.shape[1]]  # a zero gain, up to rounding
    size = S.square().sum()
    d, r = read.shape[1], read.shape[0]
    if r == 0 or not size > 0:
        return 0.0, 0.0, 0.0
    share = (((read @ U) * S).square().sum() / size).item()
    concentration = ((S.double().square() / size).square().sum()).item()
    one = 2 * r * (d - r) / (d**2 * (d + 2))  # variance of the share of a single direction
    return share, r / d, math.sqrt(max(0.0, one * (d * concentration - 1) / (d - 1)))


def overlaps(weights: Weights) -> list[Overlap]:
    """Compute ``overlap`` for every pair of heads in different layers and every kind. Costs 3 · pairs times that."""
    places = [(layer, h) for layer, heads in enumerate(weights.layers) for h in range(len(heads))]
    return [
        Overlap(kind, early, late, *overlap(weights.layers[early[0]][early[1]], weights.layers[late[0]][late[1]], kind))
        for kind in KINDS
        for early in places
        for late in places
        if early[0] < late[0]
    ]
