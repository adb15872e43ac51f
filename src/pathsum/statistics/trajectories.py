"""Trajectories of per-token losses during training (docs/framework.md §6.6): one point per checkpoint, with one
coordinate per token."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Trajectory:
    """A trajectory in the coordinates of its leading principal components."""

    coordinates: Float[Tensor, "rows k"]  # row per checkpoint, minus their mean; in nats, over √(number of tokens)
    explained: Float[Tensor, "k"]  # share of the variance over checkpoints, 0..1, in descending order


def principal_components(losses: Float[Tensor, "rows columns"], k: int) -> Trajectory:
    """Return the trajectory of ``losses`` (checkpoints × tokens) in its ``k`` leading principal components.

    The sign of a component is such that its coordinate with the largest absolute value is positive. In float64.
    ValueError unless k ≥ 1 and there are more than ``k`` checkpoints and at least ``k`` tokens, and all losses are
    finite. See docs/framework.md §6.6."""
    rows, columns = losses.shape
    if not (1 <= k < rows and k <= columns):
        raise ValueError(
            f"expected more than k = {k} checkpoints and at least as many tokens, got {rows} × {columns}; keep more "
            "checkpoints or ask for fewer components"
        )
    if not losses.isfinite().all():
        raise ValueError("expected finite losses, got NaN or infinity; leave out broken checkpoints")
    centred = losses.double() - losses.double().mean(0)
    U, S, _ = torch.linalg.svd(centred, full_matrices=False)
    coordinates = (U * S)[:, :k] / math.sqrt(columns)
    largest = coordinates.gather(0, coordinates.abs().argmax(0, keepdim=True))
    moved = S.square().sum().clamp(min=torch.finfo(torch.float64).tiny)
    return Trajectory(coordinates * torch.where(largest < 0, -1.0, 1.0), S[:k].square() / moved)
