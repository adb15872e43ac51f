"""Measure the tokens per second of our training step and of others: `python -m bench.train_step`

All run in turn in one process, so that other work on the machine slows all of them."""

import argparse
import importlib.util
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.table import THREADS, machine, record
from pathsum.config import ModelConfig, TrainConfig
from pathsum.model.fast.attention import blocks
from pathsum.model.transformer import Transformer
from pathsum.training.device import peak_flops, product_dtype
from pathsum.training.optimizer import optimizers
from pathsum.training.replay import EAGER, RecordedStep
from pathsum.training.step import update
from pipelines.paths import ROOT, params

SECONDS = 0.25  # least time of each contender in each round
MOST_LOGITS = 2**31  # in a step; rivals store several tables of them in float32, 8 GiB each
SIDE = 8192  # of the square matrices whose product gives the peak of a GPU
WARM = EAGER + 2  # steps before the measurement, so that a recorded step has been recorded

Step = Callable[[], object]


@dataclass(frozen=True)
class Shape:
    """The sizes of one training step. All other settings are those of the default recipe."""

    n_layers: int
    batch: int = 8
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

    def config(self) -> ModelConfig:
        """Return the model of the default recipe with these sizes."""
        sizes = {name: size for name, size in asdict(self).items() if name in ModelConfig.model_fields}
        return ModelConfig(**{**params(ROOT)["model"], **sizes})


SHAPES = {  # the sizes of the default grid, and twice its batch; those of the profiles gpu and paper
    "train_step.L2H4_batch16": Shape(2, batch=16),
    "train_step.L2H4_batch8": Shape(2),
    "train_step.L1H4_batch8": Shape(1),
    "train_step.L0_batch8": Shape(0),
    "gpu_step.gpu": Shape(2, 32, 4, 32, 256, 512, 1024, "cuda"),
    "gpu_step.paper": Shape(2, 32, 12, 64, 768, 2048, 50_000, "cuda", "sinusoidal"),
}


def ours(shape: Shape) -> Step:
    """Return our training step, with the default recipe."""
    model = Transformer(shape.config(), shape.d_vocab, torch.Generator().manual_seed(0)).to(shape.device)
    opts, batch = optimizers(model, TrainConfig(**params(ROOT)["train"])), shape.windows()
    low = product_dtype(shape.device) == torch.bfloat16
    if shape.device == "cuda":
        recorded = RecordedStep(model, opts, low)
        return lambda: recorded(batch)
    return lambda: update(model, opts, batch, low)


def plain_loop(shape: Shape) -> Step:
    """Return a training step of ``PlainTransformer``."""
    model, batch = PlainTransformer(shape).to(shape.device), shape.windows()

    def loss() -> Tensor:
        return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    return adamw_step(model, loss, shape.device, product_dtype(shape.device))


def transformerlens(shape: Shape, dtype: torch.dtype) -> Step:
    """Return a training step of TransformerLens's attention-only model with its default settings and loss."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig  # optional dependency

    sizes = {name: size for name, size in asdict(shape).items() if name not in ("batch", "positions")}
    model = HookedTransformer(HookedTransformerConfig(**sizes, attn_only=True, seed=0))
    batch = shape.windows()[:, :-1]
    return adamw_step(model, lambda: model(batch, return_type="loss"), shape.device, dtype)


def adamw_step(model: nn.Module, loss: Callable[[], Tensor], device: str, dtype: torch.dtype) -> Step:
    """Return a step of AdamW on ``loss``, with autocast to bf16 if that is ``dtype``."""
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> float:
        with torch.autocast(device, torch.bfloat16, enabled=dtype == torch.bfloat16):
            found = loss()
        found.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return found.item()

    return step


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
            heads = read(F.rms_norm(x, x.shape[-1:])).unflatten(-1, (3, self.n_heads, -1))
            q, k, v = heads.permute(2, 0, 3, 1, 4)
            x = x + write(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return self.unembedding(F.rms_norm(x, x.shape[-1:]))


def products(shape: Shape) -> list[tuple[int, int, int, int]]:
    """Return (batch, rows, inner, columns) of every matrix product in the forward and backward pass of a step."""
    width, heads = shape.n_heads * shape.d_head, shape.batch * shape.n_heads
    layer, found = [(shape.d_model, 3 * width), (width, shape.d_model)], []
    for reads, writes in [*layer * shape.n_layers, (shape.d_model, shape.d_vocab)]:
        found += [(1, shape.tokens, reads, writes), (1, shape.tokens, writes, reads), (1, writes, shape.tokens, reads)]
    for start, end in list(blocks(shape.n_ctx)) * shape.n_layers:
        n, d = end - start, shape.d_head
        found += [(heads, n, d, end)] * 2 + [(heads, n, end, d)] * 2 + [(heads, end, n, d)] * 2
    return found


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


def contenders(shape: Shape) -> dict[str, Step]:
    """Return the training steps that are compared at the sizes of ``shape``, by name."""
    found = {"ours": ours(shape), "matmul_peak": products_alone(shape)}
    if shape.tokens * shape.d_vocab > MOST_LOGITS:
        return found
    found["plain_loop"] = plain_loop(shape)
    if importlib.util.find_spec("transformer_lens"):
        for dtype in {torch.float32, product_dtype(shape.device)}:
            name = "float32" if dtype == torch.float32 else "autocast"
            found[f"transformerlens_{name}"] = transformerlens(shape, dtype)
    return found


def seconds_a_step(step: Step) -> float:
    """Return the mean seconds per step, over as many steps as it takes to fill SECONDS."""
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        step()
        steps += 1
    return (time.perf_counter() - start) / steps


def measure(shape: Shape, rounds: int) -> dict[str, dict[str, Any]]:
    """Compare our step with each other step at the sizes of ``shape``: medians over rounds, by name."""
    steps, flop = contenders(shape), 2.0 * sum(math.prod(sizes) for sizes in products(shape))
    for step in steps.values():
        for _ in range(WARM):
            step()
    times = [{name: seconds_a_step(step) for name, step in steps.items()} for _ in range(rounds)]
    if shape.device == "cuda":
        seconds = flop / peak_flops(torch.device("cuda"), SIDE)
        times = [one | {"device_peak": seconds} for one in times]
    found = {}
    for name in sorted(times[0].keys() - {"ours"}):
        work, unit = float(shape.tokens), "tokens/s"
        if name.endswith("_peak"):
            dtype = str(product_dtype(shape.device)).removeprefix("torch.")
            work, unit = flop / 1e9, f"GFLOP/s of {dtype} products"
        found[name] = {
            "ours": round(statistics.median(work / t["ours"] for t in times)),
            "theirs": round(statistics.median(work / t[name] for t in times)),
            "ratio": round(statistics.median(t[name] / t["ours"] for t in times), 2),
            "unit": unit,
            "machine": machine(shape.device),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(THREADS)
    for table in ("train_step.", "gpu_step.") if torch.cuda.is_available() else ("train_step.",):
        rows = {}
        for name, shape in SHAPES.items():
            if name.startswith(table):
                for other, row in measure(shape, rounds).items():
                    rows[f"{name}.{other}"] = row
                    print(f"{name}.{other}", row, flush=True)
        record(table, rows)


if __name__ == "__main__":
    main()
