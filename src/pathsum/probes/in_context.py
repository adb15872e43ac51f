"""In-context learning: the fall of the loss within a window (ICL "in-context learning score")."""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor

LONG_CONTEXT = 511  # predictions of a window of 512 tokens: room for the 500th
NEIGHBOURS = 5  # on either side of the 50th and of the 500th, against noise


def in_context_loss_drop(loss_by_position: Float[Tensor, "pos"]) -> float:
    """Return the loss near the 50th token minus the loss near the 500th, in nats: positive where the model learns from
    its context (the negative of ICL "in-context learning score"; docs/framework.md §6.1).

    Entry i is the mean loss of predicting the token at i + 1. Each end is a mean over NEIGHBOURS on either side. In
    windows under 512 tokens: mean over [0.08, 0.12] · n_ctx − mean over the last tenth. ValueError under 8 positions.
    """
    n = len(loss_by_position)
    if n < 8:
        raise ValueError(f"expected the losses of at least 8 positions, got {n}; use a longer context")
    if n >= LONG_CONTEXT:
        early, late = (slice(at - 1 - NEIGHBOURS, at + NEIGHBOURS) for at in (50, 500))
    else:
        early = slice(int(0.08 * n), max(int(0.08 * n) + 1, math.ceil(0.12 * n)))
        late = slice(n - max(1, n // 10), n)
    return (loss_by_position[early].mean() - loss_by_position[late].mean()).item()
