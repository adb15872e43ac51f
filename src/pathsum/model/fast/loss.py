"""The next-token loss and its gradient, computed together in the forward pass.

This saves memory, not time: it stores one table of the size of the logits, and autograd writes five. Forward and
backward together are 0.95 to 0.99 times as fast as ``F.linear`` and ``F.cross_entropy`` (8 windows of 256 tokens,
d_vocab 1,024).
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

_ROWS = 256  # positions whose probabilities are in float32 at the same time: 1 MiB at d_vocab 1,024
_ENTRIES = 2**28  # logits in float32 at the same time on a GPU without the kernel: 1 GiB
_RARE = 1e-30  # below this, log P is computed in float64: float32 loses digits below 1e-38 and is 0 below 1e-45


class _NextTokenLoss(torch.autograd.Function):
    """Compute the cross-entropy, and overwrite the logits with their gradient.

    Only one table of batch · pos × d_vocab numbers is stored, in the precision of the product. Autograd writes five of
    them, in float32.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, W_U: Tensor, targets: Tensor, weights: Tensor | None) -> Tensor:
        kind = x.device.type
        low = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
        x_low, W_low = x.to(low), W_U.to(low)
        gradient = x_low @ W_low.mT
        log_p = (log_p_on_cpu if kind == "cpu" else log_p_on_gpu)(gradient, targets[:, None])
        if weights is not None:
            gradient *= weights[:, None]
            log_p = log_p * weights[:, None]
        ctx.save_for_backward(gradient @ W_low, gradient.mT @ x_low)
        ctx.dtypes = x.dtype, W_U.dtype
        return -log_p.mean().to(x.dtype)

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, Tensor, None, None]:
        d_x, d_W_U = ctx.saved_tensors
        scale = scale / len(d_x)
        return d_x.to(ctx.dtypes[0]) * scale, d_W_U.to(ctx.dtypes[1]) * scale, None, None


def log_p_on_cpu(logits: Float[Tensor, "row vocab"], targets: Int[Tensor, "row 1"]) -> Float[Tensor, "row 1"]:
    """Return log P of the targets, in float64. Replace the logits by the gradient of −log P, p − 1[target], with
    p = softmax(logits)."""
    log_p = []
    high = logits.new_empty(_ROWS, logits.shape[1], dtype=torch.promote_types(logits.dtype, torch.float32))
    for block, some in zip(logits.split(_ROWS), targets.split(_ROWS), strict=True):
        p = high[: len(block)].copy_(block)
        torch.softmax(p, -1, out=p)
        p_target = p.gather(1, some)
        log_p.append(p_target.double().log())
        if (rare := p_target[:, 0] < _RARE).any():
            log_p[-1][rare] = block[rare].double().log_softmax(-1).gather(1, some[rare])
        block.copy_(p.scatter_(1, some, p_target - 1))
    return torch.cat(log_p)


def log_p_on_gpu(logits: Float[Tensor, "row vocab"], targets: Int[Tensor, "row 1"]) -> Float[Tensor, "row 1"]:
    """Do what ``log_p_on_cpu`` does, without waiting for the GPU, with log P in float32 (float64 if the logits are).

    Except in float64, the first call for a vocabulary size and data type compiles a kernel. If Triton cannot, the
    reason is printed, and operations of torch are used."""
    work = _one_by_one if logits.dtype == torch.float64 else _fastest(logits.shape[1], logits.dtype)
    return work(logits, targets.contiguous())


@functools.cache
def _fastest(d_vocab: int, dtype: torch.dtype) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the hand-written kernel."""
    try:
        from pathsum.model.fast.loss_kernel import replace_by_gradient  # Triton comes with torch for CUDA on Linux

        logits = torch.zeros(2, d_vocab, dtype=dtype, device="cuda")
        replace_by_gradient(logits, torch.zeros(2, 1, dtype=torch.int64, device="cuda"))
    except (torch.OutOfMemoryError, torch.AcceleratorError):  # not errors of Triton
        raise
    except Exception as error:  # Triton has many: no package, no C compiler, an unknown GPU, …
        why = (str(error) or type(error).__name__).splitlines()[0]
        print(
            f"training is slower than it could be, because Triton cannot compile the loss ({why}); install a C "
            "compiler, and Triton if it is missing",
            file=sys.stderr,
        )
        return _one_by_one
    return replace_by_gradient


def _one_by_one(logits: Tensor, targets: Tensor) -> Tensor:
    log_p, rows = [], max(1, _ENTRIES // logits.shape[1])
    for block, some in zip(logits.split(rows), targets.split(rows), strict=True):
        high = block.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        log_p.append(high.gather(1, some))
        block.copy_(high.exp_().scatter_add_(1, some, high.new_full(some.shape, -1.0)))
    return torch.cat(log_p)


def next_token_loss(
    x: Float[Tensor, "batch pos d_model"],
    W_U: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, "batch pos"],
    weights: Float[Tensor, "batch pos"] | None = None,
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of ``targets`` under the logits W_U x, in nats per token.

    With ``weights``, the mean is that of cross-entropy times weight. Without, it equals ``cross_entropy(x W_Uᵀ)`` up to
    the precision of products, which autocast may lower. The forward pass also computes the gradients. It costs three
    products of batch · pos × d_vocab × d_model, and one batch · pos × d_vocab table in their precision.
    """
    flat = None if weights is None else weights.flatten()
    loss: Tensor = _NextTokenLoss.apply(x.flatten(0, 1), W_U, targets.flatten(), flat)
    return loss
