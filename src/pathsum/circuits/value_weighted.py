"""Where does what a head moves come from? A head may attend to a place from which it moves nothing."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.core.weights import Head


def value_weighted(
    pattern: Float[Tensor, "batch head query key"], read: Float[Tensor, "batch pos d_model"], heads: Sequence[Head]
) -> Float[Tensor, "batch head query key"]:
    """From which keys does each head's output come? A[q, k] · ‖W_OV x_k‖ over its sum over k (AMF "value-weighted
    attention patterns"), x_k what the layer reads.

    0..1, rows sum to 1, or to 0 where nothing at all is moved. All values of one size leave the pattern as it is. Of a
    ``pattern`` that is even it is the chance level. Costs batch · head · pos · (pos + d_head · d_model).
    """
    sizes = torch.stack([(read @ head.W_V.mT @ head.W_O.mT).norm(dim=-1) for head in heads], 1)
    weighted = pattern * sizes[:, :, None]
    total = weighted.sum(-1, keepdim=True)
    return torch.where(total > 0, weighted / total.where(total > 0, 1.0), 0.0)
