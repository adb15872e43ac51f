"""The logit lens: predictions from the residual stream after each layer (nostalgebraist 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.importance import window_losses


def lens_losses(
    reads: Sequence[Float[Tensor, "batch pos d_model"]],
    W_U: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, "batch pos"],
) -> Float[Tensor, "rows batch"]:
    """Compute the mean loss of each window, in nats per token, when the stream before the first layer or after each
    layer is unembedded: one row for each of ``reads``, through the final norm (docs/framework.md §3.17).

    Costs a softmax over batch · pos · d_vocab logits each. ValueError where a read and the targets differ in shape."""
    return torch.stack([window_losses(read @ W_U.mT, targets) for read in reads])
