"""Count the memory that each profile needs, from its sizes: `python -m bench.memory`"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.markdown import table
from bench.train_step import Shape
from pathsum.model.positions import SCHEMES, Relative
from pathsum.training.evaluate import TRACED
from pipelines.compose import compose
from pipelines.paths import ROOT, params

GIB = 2**30


class Need(NamedTuple):
    """The needs of a profile's largest model."""

    profile: str
    cell: str
    parameters: int
    training: float  # GiB of the device: a step, and an evaluation with the weights in memory
    extraction: float  # GiB of the host: two traces, which are its largest part


def parameters(shape: Shape) -> int:
    """Count the parameters of a model, without its biases by distance."""
    return 2 * shape.d_vocab * shape.d_model + 4 * shape.n_layers * shape.n_heads * shape.d_head * shape.d_model


def training_bytes(shape: Shape) -> int:
    """Count the peak memory of a step.

    Each weight needs six float32 numbers: its value, its gradient as computed and as the optimizer reads it, two
    states, and one for copies in bf16. The gradient of the logits is in bf16. Layers keep for the backward pass: the
    residual stream and its normalized copy in float32 and bf16; queries, keys, values and mixed values in bf16, in two
    layouts; and patterns, where there are biases by distance.
    """
    heads = shape.n_heads * shape.d_head
    kept = shape.n_layers * shape.tokens * (2 * 2 * 4 * heads + (4 + 4 + 2 + 2) * shape.d_model)
    if issubclass(SCHEMES[shape.positions], Relative):
        kept += shape.n_layers * shape.batch * shape.n_heads * shape.n_ctx**2
    return 6 * 4 * parameters(shape) + 2 * shape.tokens * shape.d_vocab + kept


def trace_bytes(shape: Shape, windows: int) -> int:
    """Count a trace in float32: logits, every pattern, and the output of every head."""
    heads = shape.n_layers * shape.n_heads
    return 4 * windows * shape.n_ctx * (shape.d_vocab + heads * (shape.n_ctx + shape.d_model))


def training_peak_bytes(shape: Shape) -> int:
    """Count a step and an evaluation, which holds two traces on the training device."""
    return training_bytes(shape) + trace_bytes(shape, 2 * TRACED)


def need(profile: str) -> Need:
    with tempfile.TemporaryDirectory() as folder:
        compose(Path(folder) / "params.yaml", [f"profile={profile}"])
        values = params(Path(folder))
    sizes = ("n_layers", "n_heads", "d_head", "d_model", "n_ctx", "positions")
    shapes = [
        Shape(
            name,
            batch=cell["train"]["batch"],
            d_vocab=values["tokenizer"]["d_vocab"],
            **{size: cell["model"][size] for size in sizes},
        )
        for name, cell in values["cells"].items()
    ]
    largest = max(shapes, key=training_peak_bytes)
    traces = trace_bytes(largest, values["extract"]["windows"] + values["extract"]["repeated_windows"])
    return Need(profile, largest.name, parameters(largest), training_peak_bytes(largest) / GIB, traces / GIB)


def needs() -> str:
    """Return a table of the needs of every profile."""
    found = [need(path.stem) for path in sorted((ROOT / "conf" / "profile").glob("*.yaml"))]
    rows = [(n.profile, n.cell, f"{n.parameters:,}", f"{n.training:.2f}", f"{n.extraction:.2f}") for n in found]
    head = ("profile", "largest model", "parameters", "training, GiB of the device", "extraction, GiB of the host")
    return table(head, rows)


if __name__ == "__main__":
    print(needs())
