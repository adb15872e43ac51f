"""Measure the tokens per second of our training step and of three others: `python -m bench.train_step`

Ours is the training step of the default recipe (bf16 matrix products, Muon and AdamW). The others are the
attention-only model of TransformerLens with AdamW, in float32 and with autocast; a plain PyTorch loop with autocast;
and only the matrix products of our step, in bf16, with outputs allocated before. All run in one process, in turn, round
after round, so that other work on the machine slows all of them. Ratios are medians over rounds.

TransformerLens is not a dependency. Without `pip install 'transformer_lens<4'`, its rows in results.json are kept.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.measuring import THREADS, record
from pathsum.config import ModelConfig, TrainConfig
from pathsum.model.fast.attention import blocks
from pathsum.model.transformer import Transformer
from pathsum.training.optimizer import optimizers
from pathsum.training.step import update
from pipelines.paths import ROOT, params

SECONDS = 0.25  # least time of each contender in each round
Step = Callable[[], object]


@dataclass(frozen=True)
class Shape:
    """The sizes of one training step. All other settings are those of the default recipe."""

    name: str
    n_layers: int
    batch: int
    n_heads: int = 4
    d_head: int = 32
    d_model: int = 128
    n_ctx: int = 256
    d_vocab: int = 1024
    device: str = "cpu"
    positions: str = "relative"

    @property
    def tokens(self) -> int:
        return self.batch * self.n_ctx

    def windows(self) -> Tensor:
        return torch.randint(self.d_vocab, (self.batch, self.n_ctx + 1)).to(self.device)

    def select(self, *names: str) -> dict[str, Any]:
        """Return, by name, the sizes that have the same name in every library, and those of ``names``."""
        common = ("n_layers", "n_heads", "d_head", "d_model", "n_ctx")
        return {name: getattr(self, name) for name in (*common, *names)}


SHAPES = (
    Shape("L2H4_batch16", 2, 16),  # twice the default batch; the others have the sizes of the default grid
    Shape("L2H4_batch8", 2, 8),
    Shape("L1H4_batch8", 1, 8),
    Shape("L0_batch8", 0, 8),
)
ON_A_GPU = (  # sizes of the profiles gpu and paper with the default recipe; measured only on a GPU
    Shape("gpu", 2, 32, 8, 32, 256, 512, 1024, "cuda"),
    Shape("paper", 2, 32, 12, 64, 768, 2048, 50_000, "cuda"),
)


def model_config(shape: Shape) -> ModelConfig:
    """Return the model configuration of the default recipe with the sizes of ``shape``."""
    return ModelConfig(**{**params(ROOT)["model"], **shape.select()})


def ours(shape: Shape) -> Step:
    """Return a training step of the default recipe."""
    model = Transformer(model_config(shape), shape.d_vocab, torch.Generator().manual_seed(0)).to(shape.device)
    opts, batch = optimizers(model, TrainConfig(**params(ROOT)["train"])), shape.windows()
    return lambda: update(model, opts, batch, True)


def transformerlens(shape: Shape, autocast: bool) -> Step:
    """Return a training step of TransformerLens's attention-only model, with its default settings, its loss and
    AdamW."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig  # optional dependency

    model = HookedTransformer(HookedTransformerConfig(**shape.select("d_vocab", "device"), attn_only=True, seed=0))
    opt, batch = torch.optim.AdamW(model.parameters(), lr=1e-3), shape.windows()[:, :-1]
    return lambda: adamw_update(opt, lambda: model(batch, return_type="loss"), shape.device, autocast)


def plain_loop(shape: Shape) -> Step:
    """Return a training step of ``PlainTransformer`` with AdamW and bf16 autocast."""
    model, batch = PlainTransformer(shape).to(shape.device), shape.windows()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return lambda: adamw_update(opt, lambda: model.loss(batch), shape.device)


def adamw_update(
    opt: torch.optim.Optimizer, loss: Callable[[], Tensor], device: str = "cpu", autocast: bool = True
) -> float:
    """Do one optimizer step on ``loss`` and return the loss."""
    with torch.autocast(device, torch.bfloat16, enabled=autocast):
        found = loss()
    found.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    return found.item()


class PlainTransformer(nn.Module):
    """A plain baseline: torch's fused attention, RMS norm and linear maps."""

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

    def patterns(self, tokens: Tensor) -> list[Tensor]:
        """Return the attention pattern of each layer, computed separately because the fused kernel does not return
        it."""
        x, found = self.embedding(tokens) + self.positions[: tokens.shape[1]], []
        for read, write in zip(self.read, self.write, strict=True):
            q, k, v = self.heads(read, x)
            future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
            found.append((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(future, -torch.inf).softmax(-1))
            x = x + write((found[-1] @ v).transpose(1, 2).flatten(2))
        return found


def products(shape: Shape) -> list[tuple[int, int, int, int]]:
    """Return (batch, rows, inner, columns) of every matrix product in the forward and backward pass of a training step,
    without those of the optimizer. Attention is counted in the blocks in which it is computed."""
    width, heads = shape.n_heads * shape.d_head, shape.batch * shape.n_heads
    layer, found = [(shape.d_model, 3 * width), (width, shape.d_model)], []
    for reads, writes in [*layer * shape.n_layers, (shape.d_model, shape.d_vocab)]:
        found += [(1, shape.tokens, reads, writes), (1, shape.tokens, writes, reads), (1, writes, shape.tokens, reads)]
    for start, end in list(blocks(shape.n_ctx)) * shape.n_layers:
        n, d = end - start, shape.d_head
        found += [(heads, n, d, end)] * 2 + [(heads, n, end, d)] * 2 + [(heads, end, n, d)] * 2
    return found


def flop(shape: Shape) -> float:
    """Return the floating-point operations of the matrix products of a training step."""
    return 2.0 * sum(b * n * k * m for b, n, k, m in products(shape))


def products_alone(shape: Shape) -> Step:
    """Return a function that computes the matrix products of a training step in bf16, each into a separate output."""
    low = {"dtype": torch.bfloat16, "device": shape.device}
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


def seconds_a_step(step: Step) -> float:
    """Return the mean seconds per step, over as many steps as fit into SECONDS."""
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        step()
        steps += 1
    return (time.perf_counter() - start) / steps


def measure(shape: Shape, rounds: int) -> dict[str, dict[str, Any]]:
    """Measure our step and each other at the sizes of ``shape``. Return, by name of the row, the medians over rounds of
    our rate, of theirs, and of the ratio of times theirs / ours (more than 1: ours is faster)."""
    contenders = {"ours": ours(shape), "plain_loop": plain_loop(shape), "matmul_peak": products_alone(shape)}
    if importlib.util.find_spec("transformer_lens"):
        contenders["transformerlens_float32"] = transformerlens(shape, False)
        contenders["transformerlens_autocast"] = transformerlens(shape, True)
    for step in contenders.values():
        for _ in range(3):
            step()
    times = [{name: seconds_a_step(step) for name, step in contenders.items()} for _ in range(rounds)]
    found = {}
    for name in sorted(contenders.keys() - {"ours"}):
        work, unit = float(shape.tokens), "tokens/s"
        if name == "matmul_peak":
            work, unit = flop(shape) / 1e9, "GFLOP/s of the model's products"
        found[f"train_step.{shape.name}.{name}"] = {
            "ours": round(statistics.median(work / t["ours"] for t in times)),
            "theirs": round(statistics.median(work / t[name] for t in times)),
            "ratio": round(statistics.median(t[name] / t["ours"] for t in times), 2),
            "unit": unit,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(THREADS)
    if not importlib.util.find_spec("transformer_lens"):
        print("transformer_lens is not installed: its rows are kept (pip install 'transformer_lens<4')")
    for shape in SHAPES + (ON_A_GPU if torch.cuda.is_available() else ()):
        found = measure(shape, rounds)
        for name, row in found.items():
            print(f"{name:50} {row['ours']:9,} {row['theirs']:9,} {row['ratio']:6.2f}  {row['unit']}", flush=True)
        record(found, shape.device)


if __name__ == "__main__":
    main()
