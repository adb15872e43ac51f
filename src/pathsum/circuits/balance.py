"""Measure how much of the residual stream each part makes up (docs/framework.md §7.3).

A part is the embedding, the writes of a layer or the writes of a head.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.precision import scaled


def rms_norm(part: Float[Tensor, "batch pos d_model"]) -> float:
    """Return the root mean square, over windows and positions, of the Euclidean norm of ``part``, in units of the
    residual stream."""
    x, n = scaled(part, "writes")
    return x.square().sum(-1).mean().sqrt().item() * 2.0**n


def power_share(
    part: Float[Tensor, "batch pos d_model"],
    stream: Float[Tensor, "batch pos d_model"],
    scale: Float[Tensor, "#batch #pos"],
) -> float:
    """Return the power share of a part, Σ ‖s part‖² / Σ ‖s x‖² over windows and positions.

    x is the ``stream`` that a layer or the unembedding reads, and s the ``scale`` of the norm before it. Not negative.
    The shares of all parts need not add up to 1, because parts can cancel. Not finite for a stream of zeros. ValueError
    for NaN or infinity."""
    (y, n), (x, m) = scaled(part, "writes"), scaled(stream, "streams")
    return _ratio(y.square().sum(-1), x, scale) * 4.0 ** (n - m)


def projection_share(
    part: Float[Tensor, "batch pos d_model"],
    stream: Float[Tensor, "batch pos d_model"],
    scale: Float[Tensor, "#batch #pos"],
) -> float:
    """Return the projection share of a part, Σ s² ⟨part, x⟩ / Σ ‖s x‖² over windows and positions.

    x is the ``stream`` that a layer or the unembedding reads, and s the ``scale`` of the norm before it. The shares of
    parts that add up to the stream add up to 1. A share is negative if its part points against the stream. NaN for a
    stream of zeros. ValueError for NaN or infinity."""
    (y, n), (x, m) = scaled(part, "writes"), scaled(stream, "streams")
    return _ratio(torch.linalg.vecdot(y, x), x, scale) * 2.0 ** (n - m)


def _ratio(of_part: Tensor, stream: Tensor, scale: Tensor) -> float:
    scale, _ = scaled(scale, "norm scales")
    return ((scale.square() * of_part).sum() / (scale.square() * stream.square().sum(-1)).sum()).item()
