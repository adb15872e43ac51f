"""Random rotations, against which heads are measured."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def random_rotation(d_model: int, generator: torch.Generator) -> Float[Tensor, "write read"]:
    """A Haar-distributed orthogonal matrix, in float64: what is turned by it keeps its size and forgets its direction.

    The Q of a random matrix, with the signs that make R's diagonal positive (Mezzadri 2007): as LAPACK leaves them, Q
    leans towards −1 and its trace is about −√d_model / 2 instead of 0. Costs d_model³.
    """
    Q, R = torch.linalg.qr(torch.randn(d_model, d_model, generator=generator, dtype=torch.float64))
    return Q * R.diagonal().sign()
