"""Models that are trained together equal models that are trained alone."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from pathsum.calibration.stacked import losses, stack, train_together
from pathsum.config import ModelConfig, TrainConfig
from pathsum.model.transformer import Transformer
from pathsum.training.loop import evaluation_steps
from pathsum.training.optimizer import optimizers, rate, set_rate
from pathsum.training.step import update
from tests.training.small import D_VOCAB, MODEL, TRAIN

N, STEPS = 3, 7
PLAIN = TrainConfig(**{**TRAIN.model_dump(), "autocast": False})


def models(smeared: bool = False, n_layers: int = 2, norm: str = "rms") -> list[Transformer]:
    shape = {**MODEL.model_dump(), "smeared_keys": smeared, "n_layers": n_layers, "norm": norm}
    made = [Transformer(ModelConfig(**shape), D_VOCAB, torch.Generator().manual_seed(i)) for i in range(N)]
    return [model.double() for model in made]


def batches(step: int) -> Tensor:
    generator = torch.Generator().manual_seed(step)
    return torch.randint(D_VOCAB, (N, PLAIN.batch, MODEL.n_ctx + 1), generator=generator)


@pytest.mark.parametrize(("smeared", "n_layers"), [(False, 0), (False, 2), (True, 1)])
def test_each_loss_is_the_models_own_and_its_gradient_too(smeared: bool, n_layers: int) -> None:
    alone = models(smeared, n_layers)
    together, windows = stack(alone), batches(0)
    found = losses(together, windows)
    gradients = torch.autograd.grad(found.sum(), list(together.parameters()))
    for i, model in enumerate(alone):
        logits = model.trace(windows[i, :, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[i, :, 1:].flatten())
        own = torch.autograd.grad(loss, list(model.parameters()))
        torch.testing.assert_close(found[i], loss, rtol=1e-12, atol=0)
        for g, mine in zip(gradients, own, strict=True):
            torch.testing.assert_close(g[i], mine, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("smeared", "n_layers"), [(False, 2), (True, 1)])
def test_trained_together_they_end_where_each_ends_alone(smeared: bool, n_layers: int) -> None:
    """With both optimizers, the schedule and the windows. The tolerance allows for orthogonalization in float32 or
    bf16."""
    alone, together = models(smeared, n_layers), models(smeared, n_layers)
    train_together(together, batches, STEPS, PLAIN, lambda _: None)
    for i, model in enumerate(alone):
        opts = optimizers(model, PLAIN)
        for step in range(1, STEPS + 1):
            set_rate(opts, rate(step, STEPS, PLAIN))
            update(model, opts, batches(step - 1)[i], autocast=False)
        for (name, p), q in zip(model.named_parameters(), together[i].parameters(), strict=True):
            torch.testing.assert_close(q, p, rtol=0, atol=1e-4, msg=name)
    both = zip(models(smeared, n_layers)[0].parameters(), alone[0].parameters(), strict=True)
    moved = [(a - b).abs().max() for a, b in both]
    assert min(moved) > 1e-2  # what is equal has been trained


def test_they_have_their_weights_of_then_at_each_evaluation() -> None:
    """At each evaluation, the models hold the weights of that step and not those of the last step."""
    trained, seen = models(), list[tuple[int, Tensor]]()
    start = trained[1].W_U.detach().clone()
    train_together(trained, batches, STEPS, PLAIN, lambda step: seen.append((step, trained[1].W_U.detach().clone())))
    assert [step for step, _ in seen] == evaluation_steps(STEPS, PLAIN)
    torch.testing.assert_close(seen[0][1], start, rtol=0, atol=0)
    assert all(not torch.equal(a, b) for (_, a), (_, b) in pairwise(seen))


def test_a_norm_that_is_not_written_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected norm=rms and positions=relative, got none and relative"):
        stack(models(norm="none"))
