"""Measure the bandwidth of the residual stream: effective ranks of matrices, and overlaps of what earlier heads write
with what later heads read (docs/framework.md §3.15).
"""

import math
from dataclasses import dataclass

import torch

from pathsum.circuits.composition import KINDS, reader
from pathsum.circuits.precision import unit
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights


@dataclass(frozen=True)
class Overlap:
    """The share of an earlier head's write that lies in the subspace that a later head reads."""

    kind: str  # Q, K or V: read by the late head's queries, keys or values
    early: tuple[int, int]  # (layer, head)
    late: tuple[int, int]
    share: float  # of the squared norm of the early head's W_OV, 0..1
    chance: float  # mean under random rotations: r / d_model, if the late head reads r directions
    spread: float  # standard deviation under random rotations


def effective_rank(W: LowRank) -> float:
    """Return the participation ratio of the singular values, (Σ σ²)² / Σ σ⁴ (docs/framework.md §3.15).

    A number of directions, from 1 to the rank; 0 for a zero matrix. ValueError for NaN or infinity."""
    squared = unit(W).singular_values().double().square()
    total = squared.sum().item()
    return total**2 / squared.square().sum().item() if total > 0 else 0.0


def overlap(early: Head, late: Head, kind: str) -> tuple[float, float, float]:
    """Return ‖P W_OV^early‖_F² / ‖W_OV^early‖_F², and its exact mean and standard deviation under random rotations.

    P projects onto the row space of the late head's ``reader``. The share is in 0..1. Unlike a composition score, it
    does not depend on how strongly the late head reads each direction. Returns (0, 0, 0) if the ``reader`` or
    W_OV^early is zero. ValueError for an unknown ``kind``, or for weights with NaN or infinity. See docs/framework.md
    §3.15."""
    _, gains, read = unit(reader(late, kind)).svd()
    U, S, _ = unit(early.W_OV).svd()
    read = read[gains > gains.max() * torch.finfo(gains.dtype).eps * read.shape[1]]  # singular value > 0
    size = S.square().sum()
    d, r = read.shape[1], read.shape[0]
    if r == 0 or not size > 0:
        return 0.0, 0.0, 0.0
    share = (((read @ U) * S).square().sum() / size).item()
    concentration = ((S.double().square() / size).square().sum()).item()
    one = 2 * r * (d - r) / (d**2 * (d + 2))  # variance of the share of a single direction
    return share, r / d, math.sqrt(max(0.0, one * (d * concentration - 1) / (d - 1)))


def overlaps(weights: Weights) -> list[Overlap]:
    """Return the ``overlap`` of every pair of heads in different layers, for each kind (Q, K, V). Empty with fewer than
    two layers."""
    places = [(layer, h) for layer, heads in enumerate(weights.layers) for h in range(len(heads))]
    return [
        Overlap(kind, early, late, *overlap(weights.layers[early[0]][early[1]], weights.layers[late[0]][late[1]], kind))
        for kind in KINDS
        for early in places
        for late in places
        if early[0] < late[0]
    ]
