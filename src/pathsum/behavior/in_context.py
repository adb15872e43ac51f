"""In-context learning: the decrease of the loss within a window."""

import math

from jaxtyping import Float
from torch import Tensor

LONG_CONTEXT = 511  # predictions in a window of 512 tokens, enough for the 500th token
NEIGHBOURS = 5  # positions on either side of the 50th and of the 500th token that are averaged with it, to reduce noise


def in_context_loss_drop(loss_by_position: Float[Tensor, "pos"]) -> float:
    """Return the loss near the 50th token minus the loss near the 500th, in nats per token (docs/framework.md §6.1).

    The drop is positive if the model learns from context. It is the negative of the "in-context learning score" of ICL
    (Olsson et al. 2022). Entry i of ``loss_by_position`` is the mean loss of predicting the token at position i + 1.
    Each of the two losses is a mean over the token and its 5 neighbors on either side. With n < 511 entries, they are
    the means over the entries from 0.08 n to 0.12 n and over the last tenth. Raises ValueError if n < 8.
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
