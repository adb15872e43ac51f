"""Balance of the residual stream: the size of each part, and its share of what a layer reads (docs/framework.md §7.3).

Where the embedding is small compared with the writes of the first layer, the name of a path does not describe its
content (docs/framework.md §7.1).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def rms_norm(part: Float[Tensor, "batch pos d_model"]) -> float:
    """Return the root mean square over positions of a part's Euclidean norm, in the stream's unit."""
    return part.square().sum(-1).mean().sqrt().item()


def power_share(
    part: Float[Tensor, "batch pos d_model"],
    stream: Float[Tensor, "batch pos d_model"],
    scale: Float[Tensor, "#batch #pos"],
) -> float:
    """Return Σ ‖s part‖² / Σ ‖s x‖² over positions, with x the stream that a layer reads and s its norm's scale.
    From 0. Shares need not add up to 1, because parts can cancel."""
    return _ratio(part.square().sum(-1), stream, scale)


def projection_share(
    part: Float[Tensor, "batch pos d_model"],
    stream: Float[Tensor, "batch pos d_model"],
    scale: Float[Tensor, "#batch #pos"],
) -> float:
    """Return Σ s² ⟨part, x⟩ / Σ ‖s x‖² over positions. Adds up to 1 over parts that add up to the stream; negative for
    a part that the others cancel."""
    return _ratio(torch.linalg.vecdot(part, stream), stream, scale)


def _ratio(of_part: Tensor, stream: Tensor, scale: Tensor) -> float:
    return ((scale.square() * of_part).sum() / (scale.square() * stream.square().sum(-1)).sum()).item()
