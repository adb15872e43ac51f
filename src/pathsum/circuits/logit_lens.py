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
    """Compute the mean loss of each window when the residual stream is unembedded after each layer: nats per token, one
    row for each of ``reads``, the stream before the first layer and after each, through the final norm.

    The last row is the loss of the model, the first that of the direct path (with a norm, at the scale of the
    embedding). The rows between are not trained: later heads may read what W_U cannot. Costs a softmax over
    batch · pos · d_vocab logits each. ValueError where a read and the targets are not of the same windows.
    """
    return torch.stack([window_losses(read @ W_U.mT, targets) for read in reads])
