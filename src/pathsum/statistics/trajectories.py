"""How does the loss on single tokens move while a model learns? (ICL "per-token losses": Argument 1)

A model's losses on a fixed set of tokens are a point in a space with a coordinate a token; its checkpoints draw a path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Trajectory:
    """A path through the plane (or space) in which it moves most."""

    coordinates: Float[Tensor, "rows k"]  # nats a token: root mean square over tokens, about the path's mean
    explained: Float[Tensor, "k"]  # share of all movement along each component, 0..1, falling


def principal_components(losses: Float[Tensor, "rows columns"], k: int) -> Trajectory:
    """Along which mixtures of tokens does the loss move most, and when? PCA of checkpoints × tokens (ICL "per-token
    losses"): the singular vectors of the losses without their mean over checkpoints.

    A coordinate is u σ / √tokens: over all components the squared distance of two checkpoints is the mean squared
    difference of their losses on a token. A singular vector's sign means nothing: the coordinate of largest size is
    made positive. In float64. Costs rows² · columns. ValueError unless there are more than ``k`` checkpoints and at
    least ``k`` tokens: rows without their mean span one dimension less.
    """
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
