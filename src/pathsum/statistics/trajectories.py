"""Trajectories of per-token losses in training (ICL "per-token losses", Argument 1).

The losses of a checkpoint on fixed tokens are a point with one coordinate per token; the checkpoints form a path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Trajectory:
    """A path in its leading principal components."""

    coordinates: Float[Tensor, "rows k"]  # nats per token: root mean square over tokens, about the path's mean
    explained: Float[Tensor, "k"]  # share of all movement along each component, 0..1, falling


def principal_components(losses: Float[Tensor, "rows columns"], k: int) -> Trajectory:
    """Compute the leading principal components of checkpoints × tokens (docs/framework.md §6.6), with the sign that
    makes the coordinate of largest size positive.

    In float64. Costs rows² · columns. ValueError unless there are more than ``k`` checkpoints (rows without their mean
    span one dimension less) and at least ``k`` tokens."""
    rows, columns = losses.shape
    if not (1 <= k < rows and k <= columns):
        raise ValueError(
            f"expected more than k = {k} checkpoints and at least as many tokens, got {rows} × {columns}; keep more "
            "checkpoints or ask for fewer components"
        )
    centred = losses.double() - losses.double().mean(0)
    U, S, _ = torch.linalg.svd(centred, full_matrices=False)
    coordinates = (U * S)[:, :k] / math.sqrt(columns)
    largest = coordinates.gather(0, coordinates.abs().argmax(0, keepdim=True))
    moved = S.square().sum().clamp(min=torch.finfo(torch.float64).tiny)
    return Trajectory(coordinates * torch.where(largest < 0, -1.0, 1.0), S[:k].square() / moved)
