"""The training steps that are compared: ours, four others, and only the matrix products of ours.

All compute matrix products in the type that training chooses for the device: bf16 if the hardware has it, otherwise
float32. The exception is TransformerLens with its default settings, which always uses float32.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.shapes import Shape, model_config, products
from pathsum.config import TrainConfig
from pathsum.model.fast.attention import by_distance
from pathsum.model.transformer import Transformer
from pathsum.training.device import product_dtype
from pathsum.training.optimizer import optimizers
from pathsum.training.replay import RecordedStep
from pathsum.training.step import update
from pipelines.paths import ROOT, params

Step = Callable[[], object]


def autocast(device: str) -> bool:
    """Return whether training on ``device`` computes its matrix products in bf16."""
    return product_dtype(device) == torch.bfloat16


def untrained(shape: Shape) -> tuple[Transformer, list[torch.optim.Optimizer]]:
    """Return a new model with the sizes of ``shape``, and the optimizers of the default recipe."""
    model = Transformer(model_config(shape), shape.d_vocab, torch.Generator().manual_seed(0)).to(shape.device)
    return model, optimizers(model, TrainConfig(**params(ROOT)["train"]))


def ours(shape: Shape) -> Step:
    """Return our training step, with the default recipe."""
    (model, opts), batch, low = untrained(shape), shape.windows(), autocast(shape.device)
    if shape.device == "cuda":
        recorded = RecordedStep(model, opts, low)
        return lambda: recorded(batch)
    return lambda: update(model, opts, batch, low)


def compiled(shape: Shape) -> Step:
    """Return a training step with the model and optimizers of ``ours``, and ``reference_loss`` compiled by torch."""
    return reference(shape, torch.compile(reference_loss, dynamic=False))


def reference(shape: Shape, loss: Callable[[Transformer, Tensor], Tensor]) -> Step:
    """Return a training step with the default recipe, in which autograd differentiates ``loss``."""
    (model, opts), batch, low = untrained(shape), shape.windows(), autocast(shape.device)

    def step() -> float:
        with torch.autocast(shape.device, torch.bfloat16, enabled=low):
            found = loss(model, batch)
        found.backward()
        for opt in opts:
            opt.step()
            opt.zero_grad(set_to_none=True)
        return found.item()

    return step


def reference_loss(model: Transformer, windows: Tensor) -> Tensor:
    """Return the loss of ``model``, in nats per token, without the hand-written kernels of ``model/fast``."""
    x = model.embed(windows[:, :-1])
    for layer in map(model.attention, range(len(model.layers))):
        q, k, v = layer.queries_keys_values(model.normalise(x)[0])
        pattern = (q @ k.mT + by_distance(layer.position_bias(q.shape[2]))).softmax(-1)
        mixed = (pattern @ v).transpose(1, 2).flatten(2)
        x = x + F.linear(mixed, layer.W_O.transpose(0, 1).flatten(1))
    logits = F.linear(model.normalise(x)[0], model.W_U)
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def transformerlens(shape: Shape, low: bool) -> Step:
    """Return a training step of TransformerLens's attention-only model with its default settings, its loss and AdamW,
    in bf16 autocast if ``low``."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig  # optional dependency

    model = HookedTransformer(HookedTransformerConfig(**shape.select("d_vocab", "device"), attn_only=True, seed=0))
    opt, batch = torch.optim.AdamW(model.parameters(), lr=1e-3), shape.windows()[:, :-1]
    return lambda: adamw_update(opt, lambda: model(batch, return_type="loss"), shape.device, low)


def plain_loop(shape: Shape) -> Step:
    """Return a training step of ``PlainTransformer`` with AdamW."""
    model, batch, low = PlainTransformer(shape).to(shape.device), shape.windows(), autocast(shape.device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return lambda: adamw_update(opt, lambda: model.loss(batch), shape.device, low)


def adamw_update(opt: torch.optim.Optimizer, loss: Callable[[], Tensor], device: str, low: bool) -> float:
    """Take one optimizer step on ``loss``, with bf16 autocast if ``low``. Return the loss."""
    with torch.autocast(device, torch.bfloat16, enabled=low):
        found = loss()
    found.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    return found.item()


class PlainTransformer(nn.Module):
    """A plain baseline: learned positions, and torch's fused attention, RMS norm and linear maps."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.n_heads * shape.d_head
        self.n_heads = shape.n_heads
        self.embedding = nn.Embedding(shape.d_vocab, shape.d_model)
        self.positions = nn.Parameter(torch.zeros(shape.n_ctx, shape.d_model))
        self.read = nn.ModuleList(nn.Linear(shape.d_model, 3 * width, bias=False) for _ in range(shape.n_layers))
        self.write = nn.ModuleList(nn.Linear(width, shape.d_model, bias=False) for _ in range(shape.n_layers))
        self.unembedding = nn.Linear(shape.d_model, shape.d_vocab, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        for read, write in zip(self.read, self.write, strict=True):
            q, k, v = self.heads(read, x)
            x = x + write(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return self.unembedding(F.rms_norm(x, x.shape[-1:]))

    def loss(self, windows: Tensor) -> Tensor:
        return F.cross_entropy(self(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())

    def heads(self, read: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
        """Return q, k and v, each (batch, head, pos, d_head)."""
        return read(F.rms_norm(x, x.shape[-1:])).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4).unbind()


def products_alone(shape: Shape) -> Step:
    """Return a function that computes only the matrix products of a training step, into outputs that already exist."""
    low = {"dtype": product_dtype(shape.device), "device": shape.device}
    held = [
        (torch.randn(b, n, k, **low), torch.randn(b, k, m, **low), torch.empty(b, n, m, **low))
        for b, n, k, m in products(shape)
    ]

    def step() -> None:
        for left, right, out in held:
            if len(out) == 1:
                torch.mm(left[0], right[0], out=out[0])
            else:
                torch.bmm(left, right, out=out)
        if shape.device == "cuda":
            torch.cuda.synchronize()

    return step
