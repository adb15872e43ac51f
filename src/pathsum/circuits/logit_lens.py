"""The logit lens (nostalgebraist 2020): unembed the residual stream before and after each layer
(docs/framework.md §3.17).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.importance import window_losses


def lens_losses(
    reads: Sequence[Float[Tensor, "batch pos d_model"]],
    W_U: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, "batch pos"],
    b_U: Float[Tensor, "vocab"] | None = None,
) -> Float[Tensor, "rows batch"]:
    """Return the mean loss of each window, in nats per token, with each of ``reads`` unembedded by ``W_U`` and
    its bias. One row per read.

    ``reads`` are the residual streams before the first layer and after each layer, each passed through the final norm
    (docs/framework.md §3.17). ValueError if a read and the targets differ in their number of positions."""
    return torch.stack([window_losses(F.linear(read, W_U, b_U), targets) for read in reads])
