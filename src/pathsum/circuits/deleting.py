"""Heads that delete what earlier layers wrote (AMF "subspaces and residual stream bandwidth", memory management)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from pathsum.core.lowrank import LowRank


@dataclass(frozen=True)
class Alignment:
    """Correlation of a head's write with what it reads of earlier layers."""

    value: float  # −1..1: −1 deletes, 1 repeats
    spread: float  # standard deviation under random rotations, about a mean of 0


def covariance(written: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "d_model d_model"]:
    """Compute the covariance of writes over windows and positions. Squared residual units. Costs batch · pos ·
    d_model²."""
    flat = written.flatten(0, 1)
    centred = flat - flat.mean(0)
    return centred.mT @ centred / len(flat)


def alignment(W_OV: LowRank, C: Float[Tensor, "d_model d_model"]) -> Alignment:
    """Compute tr(W_OV C) / √(tr(W_OV C W_OVᵀ) tr C), with C the ``covariance`` of what earlier layers wrote
    (docs/framework.md §3.16): the mean cosine of a write and its image under W_OV, weighted by size.

    −1 where a head that attends to a position writes the opposite of what was written there. The spread under random
    rotations is exact. 0 where there is nothing to delete or the head is zero. Costs d_model² · d_head."""
    read = W_OV.right @ C  # rank × d_model
    trace = (read * W_OV.left.mT).sum().item()
    gram = W_OV.left.mT @ W_OV.left
    kept = ((read @ W_OV.right.mT) * gram).sum().item()  # tr(W_OV C W_OVᵀ)
    size = math.sqrt(max(0.0, kept) * C.trace().item())
    if size == 0:
        return Alignment(0.0, 0.0)
    spread = ((read @ read.mT) * gram).sum().sqrt().item() / math.sqrt(len(C))
    return Alignment(trace / size, spread / size)


def removed(output: Float[Tensor, "batch pos d_model"], written: Float[Tensor, "batch pos d_model"]) -> float:
    """Compute the share of earlier writes at a position that a head's output cancels there: −Σ ⟨o, y⟩ / Σ ⟨y, y⟩, both
    minus their mean (docs/framework.md §3.16).

    1 where it cancels all of it, negative where it adds to it, 0 where nothing was written. Includes patterns and norm,
    unlike ``alignment``. Costs batch · pos · d_model."""
    o, y = (x - x.mean((0, 1)) for x in (output, written))
    size = y.square().sum().item()
    return -(o * y).sum().item() / size if size > 0 else 0.0
