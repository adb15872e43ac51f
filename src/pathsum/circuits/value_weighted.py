"""Weight attention by the size of what a head moves: a head may attend to a position from which it moves nothing."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.precision import finite, scaled, unit
from pathsum.core.weights import Head


def value_weighted(
    pattern: Float[Tensor, "batch head query key"], read: Float[Tensor, "batch pos d_model"], heads: Sequence[Head]
) -> Float[Tensor, "batch head query key"]:
    """Return A[q, k] ‖W_OV x_k‖ divided by its sum over the keys k, for each of the ``heads`` of a layer.

    A is the ``pattern``, and x = ``read`` is the normalized residual stream that the layer reads. 0..1. Rows sum to 1,
    or to 0 if nothing is moved. ValueError for NaN or infinity. See docs/framework.md §3.14."""
    (x, _), W_OVs = scaled(read, "streams"), [unit(head.W_OV) for head in heads]
    sizes = torch.stack([(x @ W_OV.right.mT @ W_OV.left.mT).norm(dim=-1) for W_OV in W_OVs], 1)
    weighted = finite(pattern, "patterns") * sizes[:, :, None]
    total = weighted.sum(-1, keepdim=True)
    return weighted.div_(total.where(total > 0, math.inf))
