"""The loss and its gradient in one pass equal those of cross-entropy."""

import sys

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pathsum.model.fast import loss
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


def test_weights_multiply_the_losses_and_their_gradients() -> None:
    g = torch.Generator().manual_seed(3)
    x = torch.randn(BATCH, POS, D_MODEL, generator=g, dtype=torch.float64, requires_grad=True)
    W_U = torch.randn(VOCAB, D_MODEL, generator=g, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(VOCAB, (BATCH, POS), generator=g)
    weights = torch.rand(BATCH, POS, generator=g, dtype=torch.float64)
    each = F.cross_entropy(F.linear(x, W_U).flatten(0, 1), targets.flatten(), reduction="none")
    exact = (each * weights.flatten()).mean()
    ours = next_token_loss(x, W_U, targets, weights)
    torch.testing.assert_close(ours, exact, rtol=1e-12, atol=0)
    for mine, theirs in zip(torch.autograd.grad(ours, (x, W_U)), torch.autograd.grad(exact, (x, W_U)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-14)


def test_a_hopeless_prediction_costs_what_it_should() -> None:
    """No underflow, although e^−200 is 0 in float32."""
    x, W_U = torch.tensor([[[1.0]]]), torch.tensor([[200.0], [0.0]])
    assert next_token_loss(x, W_U, torch.tensor([[1]])).item() == 200


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_operations_that_a_gpu_can_fall_back_on_give_the_loss_and_its_gradient(dtype: torch.dtype) -> None:
    """Here on a CPU; tests/training/test_replay.py compares the kernel with them on a GPU."""
    g = torch.Generator().manual_seed(2)
    logits = (30 * torch.randn(301, VOCAB, generator=g)).to(dtype)
    targets, gradient = torch.randint(VOCAB, (301, 1), generator=g), logits.clone()
    log_p = _one_by_one(gradient, targets)
    p = logits.double().softmax(-1)
    error = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 4e-3}[dtype]
    finest = 1e-12 if dtype == torch.float64 else 1e-5  # log P is in float32, from products in bf16, too
    exact = logits.double().log_softmax(-1).gather(1, targets)
    torch.testing.assert_close(log_p.double(), exact, rtol=finest, atol=finest)
    torch.testing.assert_close(gradient.double(), p - F.one_hot(targets[:, 0], VOCAB), rtol=error, atol=error)
    expected = logits.clone()
    torch.testing.assert_close(log_p.double(), log_p_on_cpu(expected, targets), rtol=finest, atol=finest)
    torch.testing.assert_close(gradient, expected, rtol=error, atol=error)


def test_without_triton_training_is_slower_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pathsum.model.fast.loss_kernel", None)
    assert loss._fastest.__wrapped__(7, torch.float32) is _one_by_one
    assert "because Triton cannot compile the loss (import of pathsum.model.fast.loss_kernel" in capsys.readouterr().err
