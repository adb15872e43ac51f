"""Muon or AdamW for the attention matrices and AdamW for all other parameters, with the same schedule."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import AdamW, Optimizer

from pathsum.config import TrainConfig
from pathsum.core.threads import halves, in_threads
from pathsum.model.transformer import Transformer
from pathsum.training.device import product_dtype


class Muon(Optimizer):
    """Nesterov momentum with orthogonalized updates (Jordan et al. 2024), whose singular values are about ``lr``.

    Parameters have shape (…, head, d_head, d_model) or (…, head, d_model, d_head), with the same sizes in all of them
    and d_head ≤ d_model. Axes before the heads belong to separate models. All heads of a parameter are orthogonalized
    together, as one (heads · d_head) × d_model matrix. ``torch.optim.Muon`` updates one matrix at a time and takes 15
    times as long; its updates differ by 0.5 %.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, momentum: float, weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient. ``closure`` must be None."""
        assert closure is None
        for group in self.param_groups:
            weights = [p for p in group["params"] if p.grad is not None]
            if not weights:
                continue
            gradients, velocities = [p.grad for p in weights], [self._velocity(p) for p in weights]
            torch._foreach_lerp_(velocities, gradients, 1 - group["momentum"])
            updates = torch._foreach_lerp(gradients, velocities, group["momentum"])
            whole = torch.stack([_by_head_rows(update).flatten(-3, -2) for update in updates])
            orthogonal = torch.cat(in_threads(orthogonalize, halves(whole)))
            rows = [_by_head_rows(p) for p in weights]
            changes = [change.view(row.shape) for change, row in zip(orthogonal, rows, strict=True)]
            torch._foreach_mul_(rows, 1 - group["lr"] * group["weight_decay"])
            if isinstance(group["lr"], Tensor):
                torch._foreach_sub_(rows, torch._foreach_mul(changes, group["lr"]))
            else:
                torch._foreach_add_(rows, changes, alpha=-group["lr"])

    def _velocity(self, p: Tensor) -> Tensor:
        """Return the running mean of the gradients of ``p``, which starts at 0."""
        if "velocity" not in self.state[p]:
            self.state[p]["velocity"] = torch.zeros_like(p)
        velocity: Tensor = self.state[p]["velocity"]
        return velocity


def _by_head_rows(p: Tensor) -> Tensor:
    """Return a view of shape (…, head, d_head, d_model)."""
    return p if p.shape[-2] <= p.shape[-1] else p.mT


def orthogonalize(G: Float[Tensor, "*batch rows columns"]) -> Float[Tensor, "*batch rows columns"]:
    """Approximate the orthogonal factor U Vᵀ of G = U S Vᵀ by five Newton–Schulz steps."""
    X = G.to(product_dtype(G.device.type)).reshape(-1, *G.shape[-2:])
    wide = X.shape[-2] <= X.shape[-1]  # if not, X is transposed, so that X Xᵀ has the length of the shorter side
    X = X if wide else X.mT
    X = X / (X.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        A = torch.bmm(X, X.mT)
        X = torch.baddbmm(X, torch.baddbmm(A, A, A, beta=-4.7750, alpha=2.0315), X, beta=3.4445)
    return (X if wide else X.mT).reshape(G.shape).to(G.dtype)


def optimizers(model: Transformer, config: TrainConfig) -> list[Optimizer]:
    """Return optimizers that together hold every parameter once."""
    attention: list[Tensor] = []
    positions: list[Tensor] = []
    later: list[Tensor] = []
    for name, p in model.layers.named_parameters():
        (attention if ".W_" in name else positions if name.startswith("0.") else later).append(p)
    groups: list[dict[str, Any]] = [
        {"params": [model.W_E], "lr": config.lr_embedding},
        {"params": [model.W_U], "lr": config.lr_unembedding},
    ]
    for group, lr in ((positions, config.lr_positions), (later, config.lr_later_positions)):
        if group:
            groups.append({"params": group, "lr": lr, "weight_decay": 0.0})
    opts: list[Optimizer] = []
    if attention and config.optimizer == "muon":
        opts.append(Muon(attention, config.lr_attention, config.momentum, config.decay_attention))
    elif attention:
        groups.append({"params": attention, "lr": config.lr_attention, "weight_decay": config.decay_attention})
    on_gpu = model.W_E.device.type == "cuda"
    decay = config.decay_embedding
    opts.append(AdamW(groups, betas=config.betas, eps=1e-10, weight_decay=decay, fused=True, capturable=on_gpu))
    for each in (g for o in opts for g in o.param_groups):
        each["peak_lr"] = each["lr"]
        if on_gpu:
            each["lr"] = torch.tensor(each["lr"], device=model.W_E.device)
    return opts


def set_rate(optimizers: list[Optimizer], share: float) -> None:
    """Set the learning rate of every group to ``share`` times its peak rate."""
    for group in (g for o in optimizers for g in o.param_groups):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(group["peak_lr"] * share)
        else:
            group["lr"] = group["peak_lr"] * share


def rate(step: int, steps: int, config: TrainConfig) -> float:
    """Return the learning rate at ``step`` (1 to ``steps``), as a share (0 to 1) of the peak learning rate."""
    up = step / config.warmup_steps if config.warmup_steps else 1.0
    decay = config.decay_share * steps
    down = (steps - step + 1) / decay if decay else 1.0
    return min(1.0, up, down)
