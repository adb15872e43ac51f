"""Random rotations, for null distributions of scores (docs/framework.md §10.3)."""

import torch
from jaxtyping import Float
from torch import Tensor


def random_rotation(d_model: int, generator: torch.Generator) -> Float[Tensor, "write read"]:
    """Sample a Haar-distributed orthogonal matrix, in float64 (docs/framework.md §10.3).

    It is the Q factor of a matrix of independent normal entries, with the signs that make the diagonal of the R factor
    positive (Mezzadri 2007)."""
    Q, R = torch.linalg.qr(torch.randn(d_model, d_model, generator=generator, dtype=torch.float64))
    return Q * R.diagonal().sign()
