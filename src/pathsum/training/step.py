"""One training step: the gradients of a batch and the update of the parameters."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer

from pathsum.core.memory import keep_freed
from pathsum.core.threads import halves, in_threads
from pathsum.model.fast.loss import next_token_loss
from pathsum.model.transformer import Transformer
from pathsum.training import ranks

_WINDOWS = 8  # of a half batch; two smaller halves, one after the other, take 1.15 times as long as the whole


def update(
    model: Transformer, opts: list[Optimizer], batch: Tensor, autocast: bool, weights: Tensor | None = None
) -> float:
    """Take one training step on ``batch``. Return the loss before the step, in nats per token. See ``advance``."""
    return advance(model, opts, batch, autocast, weights).item()


def advance(
    model: Transformer, opts: list[Optimizer], batch: Tensor, autocast: bool, weights: Tensor | None = None
) -> Float[Tensor, ""]:
    """Take one training step on ``batch``."""
    if batch.device.type == "cpu":
        keep_freed(2**30)
    parameters = list(model.parameters())

    def share(windows: Tensor, weights: Tensor | None) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the part of the batch's mean loss that ``windows`` contribute, and its gradients."""
        with torch.autocast(batch.device.type, torch.bfloat16, enabled=autocast):
            loss = next_token_loss(model.read(windows[:, :-1]), model.W_U, windows[:, 1:], weights)
            loss = loss * (len(windows) / len(batch))
        return loss.detach(), torch.autograd.grad(loss, parameters)

    parts = halves(batch, _WINDOWS)
    weighted = (None,) * len(parts) if weights is None else halves(weights, _WINDOWS)
    (loss, gradients), *others = in_threads(share, parts, weighted)
    for other, more in others:
        loss += other
        torch._foreach_add_(gradients, more)
    loss, *means = ranks.mean((loss, *gradients))
    for p, gradient in zip(parameters, means, strict=True):
        p.grad = torch.empty_like(p).copy_(gradient)  # fused AdamW needs the memory layout of the parameter
    for opt in opts:
        opt.step()
        opt.zero_grad(set_to_none=True)
    return loss
