"""The in-context loss drop of single windows (docs/framework.md §6.1)."""

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.behavior.in_context import in_context_loss_drop


def loss_drops(losses: Float[Tensor, "batch pos"]) -> Float[Tensor, "batch"]:
    """Return the in-context loss drop of each window, in nats per token. Errors as in ``in_context_loss_drop``."""
    return torch.tensor([in_context_loss_drop(row) for row in losses], dtype=torch.float64)


def positions(n: int) -> tuple[slice, slice]:
    """Return the early and the late positions, of ``n``, whose mean losses the loss drop compares. ValueError if n < 8.

    They are found from the loss drop of a loss of 1 at each position in turn, and so are always those that it reads."""
    weights = loss_drops(torch.eye(n, dtype=torch.float64))
    early, late = ((sign * weights > 0).nonzero().flatten().tolist() for sign in (1, -1))
    return slice(early[0], early[-1] + 1), slice(late[0], late[-1] + 1)
