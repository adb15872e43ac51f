"""The loss of the next token, and its gradient in the same pass."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

_ROWS = 512  # positions at a time whose probabilities are kept in float32


class _NextTokenLoss(torch.autograd.Function):
    """Autograd's own way writes batch · pos × d_vocab float32 numbers five times; this one writes them once, in the
    precision of the product, and turns logits into their gradient in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, W_U: Tensor, targets: Tensor) -> Tensor:
        kind = x.device.type
        low = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
        x_low, W_low = x.to(low), W_U.to(low)
        gradient, n = x_low @ W_low.mT, len(targets)
        total = torch.zeros((), dtype=torch.float64, device=x.device)
        for logits, some in zip(gradient.split(_ROWS), targets[:, None].split(_ROWS), strict=True):
            log_p = torch.log_softmax(logits, -1, dtype=torch.promote_types(low, torch.float32))
            total -= log_p.gather(1, some).sum(dtype=torch.float64)
            p = log_p.exp_()
            logits.copy_(p.scatter_add_(1, some, p.new_full(some.shape, -1)))
        ctx.save_for_backward((gradient @ W_low).to(x.dtype) / n, (gradient.mT @ x_low).to(W_U.dtype) / n)
        return (total / n).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, Tensor, None]:
        d_x, d_W_U = ctx.saved_tensors
        return scale * d_x, scale * d_W_U, None


def next_token_loss(
    x: Float[Tensor, "batch pos d_model"], W_U: Float[Tensor, "vocab d_model"], targets: Int[Tensor, "batch pos"]
) -> Float[Tensor, ""]:
    """What does predicting ``targets`` by W_U x cost? Mean cross-entropy in nats a token, from 0.

    Equals ``cross_entropy(x W_Uᵀ)`` up to the precision of products, which autocast may lower. Costs three products of
    batch · pos × d_vocab × d_model, and one such table in their precision.
    """
    loss: Tensor = _NextTokenLoss.apply(x.flatten(0, 1), W_U, targets.flatten())
    return loss
