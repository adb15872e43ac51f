"""The loss and its gradient in one pass equal those of cross-entropy."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pathsum.model.fast.loss import _one_by_one, log_p_on_cpu, next_token_loss

BATCH, POS, D_MODEL, VOCAB = 7, 101, 13, 37  # more positions than are taken at a time


def gradients(plain: bool, autocast: bool, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(1)
    x = torch.randn(BATCH, POS, D_MODEL, generator=g).to(dtype).requires_grad_()
    W_U = torch.randn(VOCAB, D_MODEL, generator=g).to(dtype).requires_grad_()
    targets = torch.randint(VOCAB, (BATCH, POS), generator=g)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        if plain:
            loss = F.cross_entropy(F.linear(x, W_U).flatten(0, 1).to(dtype), targets.flatten())
        else:
            loss = next_token_loss(x, W_U, targets)
    (3 * loss).backward()
    assert x.grad is not None
    assert W_U.grad is not None
    return loss.detach(), x.grad, W_U.grad


def test_it_is_cross_entropy_and_its_gradient() -> None:
    for ours, theirs in zip(gradients(False, False, torch.float64), gradients(True, False, torch.float64), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("autocast", [False, True])
def test_it_is_as_exact_as_the_products(autocast: bool) -> None:
    exact = gradients(True, False, torch.float64)
    ours, theirs = gradients(False, autocast), gradients(True, autocast)
    for a, b, e in zip(ours, theirs, exact, strict=True):
        assert (a - e).norm() <= 1.5 * (b - e).norm() + 1e-6 * e.norm()


def test_a_hopeless_prediction_costs_what_it_should() -> None:
    """No underflow, although e^−200 is 0 in float32."""
    x, W_U = torch.tensor([[[1.0]]]), torch.tensor([[200.0], [0.0]])
    assert next_token_loss(x, W_U, torch.tensor([[1]])).item() == 200


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_loss_on_a_gpu_is_that_on_a_cpu(dtype: torch.dtype) -> None:
    """The operations of torch, here on a CPU; tests/training/test_replay.py tests the kernel on a GPU."""
    g = torch.Generator().manual_seed(2)
    logits = (30 * torch.randn(301, VOCAB, generator=g)).to(dtype)
    targets, gradient = torch.randint(VOCAB, (301, 1), generator=g), logits.clone()
    log_p = _one_by_one(gradient, targets)
    p = logits.double().softmax(-1)
    error = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 4e-3}[dtype]
    torch.testing.assert_close(log_p.double(), logits.double().log_softmax(-1).gather(1, targets), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient.double(), p - F.one_hot(targets[:, 0], VOCAB), rtol=error, atol=error)
    expected = logits.clone()
    torch.testing.assert_close(log_p.double(), log_p_on_cpu(expected, targets), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, expected, rtol=error, atol=error)
