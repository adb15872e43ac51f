"""Train many small models in one set of tensors, up to rounding as each would be trained alone."""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.config import TrainConfig
from pathsum.model.fast.attention import biased_attention
from pathsum.model.fast.norm import rms_normalised
from pathsum.model.positions import Relative, scheme
from pathsum.model.transformer import Transformer
from pathsum.training.loop import evaluation_steps
from pathsum.training.optimizer import optimizers, rate, set_rate


def train_together(
    models: Sequence[Transformer],
    batches: Callable[[int], Int[Tensor, "model batch window"]],
    steps: int,
    config: TrainConfig,
    on_evaluation: Callable[[int], None],
) -> None:
    """Train several models of one shape together, each on its own windows."""
    together = stack(models)
    opts, parameters = optimizers(together, config), list(together.parameters())
    evaluations = evaluation_steps(steps, config)
    for step in range(steps + 1):
        if step:
            set_rate(opts, rate(step, steps, config))
            gradients = torch.autograd.grad(losses(together, batches(step - 1)).sum(), parameters)
            for p, gradient in zip(parameters, gradients, strict=True):
                p.grad = torch.empty_like(p).copy_(gradient)  # fused AdamW needs the memory layout of the parameter
            for opt in opts:
                opt.step()
        if step in evaluations:
            unstack(together, models)
            on_evaluation(step)


def stack(models: Sequence[Transformer]) -> Transformer:
    """Return one module with the parameters of all ``models``, stacked along a new first axis."""
    config = models[0].config
    if config.norm != "rms" or scheme(config) is not Relative:
        raise ValueError(f"expected norm=rms and positions=relative, got {config.norm} and {config.positions}")
    together = deepcopy(models[0])
    for name, p in together.named_parameters():
        p.data = torch.stack([model.get_parameter(name).detach() for model in models])
    return together


@torch.no_grad()
def unstack(together: Transformer, models: Sequence[Transformer]) -> None:
    """Copy the stacked parameters back into each of ``models``."""
    for name, p in together.named_parameters():
        for model, own in zip(models, p, strict=True):
            model.get_parameter(name).copy_(own)


def losses(together: Transformer, windows: Int[Tensor, "model batch window"]) -> Float[Tensor, "model"]:
    """Return the mean next-token loss of each model on its own windows, in nats. ``together`` comes from ``stack``."""
    logits = read(together, windows[..., :-1]) @ together.W_U.mT
    each = F.cross_entropy(logits.flatten(0, 1), windows[..., 1:].flatten(), reduction="none")
    return each.view(len(windows), -1).mean(1)


def read(together: Transformer, tokens: Int[Tensor, "model batch pos"]) -> Float[Tensor, "model place d_model"]:
    """Return the normalized final residual stream of each model, as ``Transformer.read`` does."""
    n, d_model, d_vocab = together.W_E.shape
    table = together.W_E.mT.reshape(n * d_vocab, d_model)
    x = F.embedding(tokens + torch.arange(n)[:, None, None] * d_vocab, table).flatten(1, 2)
    for layer in together.layers:
        x = x + _attend(layer, rms_normalised(x), tokens.shape)  # type: ignore[arg-type]
    return rms_normalised(x)


def _attend(layer: Relative, x: Tensor, shape: torch.Size) -> Float[Tensor, "model place d_model"]:
    """Return the sum of the writes of a layer's heads for each model, as ``Attention.forward`` does."""
    (n, batch, pos), (heads, d_head) = shape, layer.W_Q.shape[1:3]
    W_QKV = torch.cat([layer.W_Q / math.sqrt(d_head), layer.W_K, layer.W_V], 1).flatten(1, 2)
    q, k, v = (x @ W_QKV.mT).view(n, batch, pos, 3, heads, d_head).permute(3, 1, 0, 4, 2, 5).contiguous()
    if layer.smear is not None:
        own = layer.smear.sigmoid()[..., None, None]
        k = own * k + (1 - own) * F.pad(k, (0, 0, 1, 0))[..., :-1, :]
    bias = layer.bias.flatten(0, 1)[:, :pos]
    mixed = biased_attention(q.flatten(1, 2), k.flatten(1, 2), v.flatten(1, 2), bias)
    mixed = mixed.view(batch, n, heads, pos, d_head).permute(1, 0, 3, 2, 4).reshape(n, batch * pos, heads * d_head)
    return mixed @ layer.W_O.mT.flatten(1, 2)
