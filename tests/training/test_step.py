"""A step on the parts of a batch equals the step on the whole batch."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch.optim import SGD

from pathsum.config import ModelConfig
from pathsum.model.transformer import Transformer
from pathsum.text.repeats import repeat_weights
from pathsum.training.step import update
from tests.training.small import D_VOCAB, MODEL, windows


@pytest.mark.parametrize("size", [1, 5, 17])
def test_shares_of_a_batch_add_up_to_its_gradient(size: int) -> None:
    """Seventeen windows are split into parts of nine and eight. The loss of each part is weighted by its size."""
    model = Transformer(MODEL, D_VOCAB, torch.Generator().manual_seed(0)).double()
    plain = copy.deepcopy(model)
    batch = windows().batch(torch.arange(size))
    before = update(model, [SGD(model.parameters(), lr=1.0)], batch, autocast=False)
    loss = F.cross_entropy(plain(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    loss.backward()
    assert before == pytest.approx(loss.item(), rel=1e-12)
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert theirs.grad is not None
        torch.testing.assert_close(ours, theirs - theirs.grad, rtol=1e-12, atol=1e-12, msg=name)


def test_a_step_with_weights_follows_the_weighted_mean() -> None:
    model = Transformer(MODEL, D_VOCAB, torch.Generator().manual_seed(0)).double()
    plain = copy.deepcopy(model)
    batch = windows().batch(torch.arange(5))
    weights = repeat_weights(batch, 4.0).double()
    before = update(model, [SGD(model.parameters(), lr=1.0)], batch, False, weights)
    each = F.cross_entropy(plain(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten(), reduction="none")
    loss = (each * weights.flatten()).sum() / weights.sum()
    loss.backward()
    assert before == pytest.approx(loss.item(), rel=1e-6)
    assert before != pytest.approx(each.mean().item(), rel=1e-3)
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        assert theirs.grad is not None
        torch.testing.assert_close(ours, theirs - theirs.grad, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("positions", ["relative", "sinusoidal"])
def test_a_gradient_lies_in_memory_as_its_parameter_does(positions: str) -> None:
    """Fused AdamW ignores strides, so a gradient with another memory layout would update the wrong weights."""
    shape = ModelConfig(**{**MODEL.model_dump(), "positions": positions, "smeared_keys": True, "norm": "rms"})
    model = Transformer(shape, D_VOCAB, torch.Generator().manual_seed(0))
    strides: dict[str, bool] = {}

    class Watch(SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            for name, p in model.named_parameters():
                assert p.grad is not None
                strides[name] = p.grad.stride() == p.stride()

    update(model, [Watch(model.parameters(), lr=1.0)], windows().batch(torch.arange(5)), autocast=True)
    assert len(strides) == len(list(model.parameters()))
    assert all(strides.values()), strides
