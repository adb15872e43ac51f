"""Checks and scaling of matrices before their entries are squared or compared.

A comparison with NaN is false, so a guard such as ``if size > 0`` would turn broken weights into a score of 0.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.core.lowrank import LowRank


def finite(x: Float[Tensor, "*shape"], what: str = "weights") -> Float[Tensor, "*shape"]:
    """Return ``x``, converted to float32 if it has half precision. ValueError for NaN or infinity."""
    if x.numel() and not torch.stack(x.aminmax()).isfinite().all():  # fifteen times as fast as x.isfinite()
        raise ValueError(f"expected finite {what}, got NaN or infinity in a matrix of shape {list(x.shape)}")
    return x.to(torch.promote_types(x.dtype, torch.float32))


def scaled(x: Float[Tensor, "*shape"], what: str = "weights") -> tuple[Float[Tensor, "*shape"], int]:
    """Return x / 2ⁿ and n, with n such that the largest entry is in ±1..2; n is 0 if all entries are 0.

    A power of two changes no digit, so a score that does not depend on the scale stays the same to the last bit.
    ValueError as in ``finite``, which is applied to ``x``."""
    x = finite(x, what)
    largest = x.abs().max().item() if x.numel() else 0.0
    n = math.frexp(largest)[1] - 1 if largest else 0
    return x / 2.0**n, n


def unit(W: LowRank) -> LowRank:
    """Return the matrix up to a positive factor: each of its two factors ``scaled``. ValueError as there."""
    return LowRank(scaled(W.left)[0], scaled(W.right)[0])


def checked(W: LowRank) -> LowRank:
    """Return the matrix with both factors ``finite``. ValueError as there."""
    return LowRank(finite(W.left), finite(W.right))


def require_single(*matrices: Tensor) -> None:
    """Raise ValueError for matrices in half precision, or with NaN or infinity."""
    for W in matrices:
        if torch.finfo(W.dtype).bits < 32:
            raise ValueError(
                f"eigenvalues need float32 at least, got {W.dtype}; convert with weights.to(torch.float32)"
            )
        finite(W)
