"""Detect heads that delete what earlier layers wrote, memory management in AMF (docs/framework.md §3.16)."""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.precision import finite, scaled, unit
from pathsum.core.lowrank import LowRank


@dataclass(frozen=True)
class Alignment:
    """Correlation between what earlier layers wrote and its image under a head's W_OV."""

    value: float  # −1..1: at −1 the head deletes earlier writes, at 1 it repeats them
    spread: float  # standard deviation under random rotations, where the mean is 0


def covariance(written: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "d_model d_model"]:
    """Return the covariance of writes over windows and positions, in squared units of the residual stream, as float64.
    ValueError for NaN or infinity."""
    x, n = scaled(written, "writes")
    flat = x.flatten(0, 1)
    centred = flat - flat.mean(0)
    return (centred.mT @ centred / len(flat)).double() * 4.0**n


def alignment(W_OV: LowRank, C: Float[Tensor, "d_model d_model"]) -> Alignment:
    """Return tr(W_OV C) / √(tr(W_OV C W_OVᵀ) tr C), with C the ``covariance`` of what earlier layers wrote.

    This is the correlation between the earlier writes and their images under W_OV. It is −1 if W_OV maps each earlier
    write to its opposite, up to one positive factor. Its spread under random rotations is exact, not sampled. Both are
    0 if nothing was written or the head is zero. ValueError for NaN or infinity. See docs/framework.md §3.16."""
    W_OV, (C, _) = unit(W_OV), scaled(C, "covariances")
    C = C.to(W_OV.left.dtype)
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
    """Return the share of earlier writes that a head's output cancels at the same position, −Σ ⟨o, y⟩ / Σ ⟨y, y⟩.

    o is the head's ``output`` and y what earlier layers wrote, each minus its mean over windows and positions. The
    share is 1 if the head cancels everything, negative if it adds to the earlier writes, and 0 if nothing was written.
    Unlike ``alignment``, it depends on the attention patterns and the norm. ValueError for NaN or infinity. See
    docs/framework.md §3.16."""
    output, written = finite(output, "writes"), finite(written, "writes")
    (o, n), (y, m) = (scaled(x - x.mean((0, 1)), "writes") for x in (output, written))
    size = y.square().sum().item()
    return -(o * y).sum().item() / size * 2.0 ** (n - m) if size > 0 else 0.0
