"""What would the model say if it stopped after a layer? (nostalgebraist 2020, "logit lens")"""

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
    """How much does the model lose if the residual stream is unembedded after each layer? Mean loss of each window,
    nats a token, a row for each of ``reads``: the stream before the first layer and after each, through the final norm.

    The last row is the model's own loss, the first that of the direct path alone (without a norm; with one, at the
    embedding's own scale). Nothing trains the rows between: later heads may read what W_U cannot. Costs a softmax over
    batch · pos · d_vocab logits each. ValueError where a read and the targets are not of the same windows.
    """
    return torch.stack([window_losses(read @ W_U.mT, targets) for read in reads])
