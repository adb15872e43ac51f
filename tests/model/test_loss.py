"""The loss and its gradient in one pass equal those of cross-entropy."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pathsum.model.fast.loss import next_token_loss

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
