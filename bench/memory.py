"""Compute the memory that each profile needs, from the sizes of its models: `python -m bench.memory`"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.markdown import table
from bench.shapes import Shape
from pathsum.model.positions import SCHEMES, Relative
from pathsum.training.evaluate import TRACED
from pipelines.compose import compose
from pipelines.paths import ROOT, params

GIB = 2**30


class Need(NamedTuple):
    """The memory that the largest model of a profile needs."""

    profile: str
    cell: str  # name of the model
    parameters: int
    training: float  # GiB on the device: a training step plus an evaluation
    extraction: float  # GiB on the host: two traces, the largest part of extraction


def parameters(shape: Shape) -> int:
    """Return the number of parameters of a model, without position biases."""
    return 2 * shape.d_vocab * shape.d_model + 4 * shape.n_layers * shape.n_heads * shape.d_head * shape.d_model


def training_bytes(shape: Shape, width: int = 2) -> int:
    """Return the peak memory of a training step in bytes. Numbers in its matrix products take ``width`` bytes: 2 in
    bf16, 4 in float32.

    Each weight needs five float32 numbers: its value, two copies of its gradient and two optimizer states. bf16 adds
    two copies of the weight, together as large as one more such number. The gradient of the logits takes ``width``
    bytes per number. For the backward pass, each layer keeps

    * the residual stream and its normalized copy in float32, and with bf16 also in bf16;
    * the queries, keys, values and head outputs in two layouts;
    * with relative positions, the attention patterns up to each query.
    """
    heads, copies = shape.n_heads * shape.d_head, width < 4
    kept = shape.n_layers * shape.tokens * (2 * width * 4 * heads + 2 * (4 + copies * width) * shape.d_model)
    if issubclass(SCHEMES[shape.positions], Relative):
        kept += shape.n_layers * shape.batch * shape.n_heads * shape.n_ctx**2 * width // 2
    return (5 + copies) * 4 * parameters(shape) + width * shape.tokens * shape.d_vocab + kept


def trace_bytes(shape: Shape, windows: int) -> int:
    """Return the memory of a trace in bytes: logits, attention patterns, and outputs of all heads, in float32."""
    heads = shape.n_layers * shape.n_heads
    return 4 * windows * shape.n_ctx * (shape.d_vocab + heads * (shape.n_ctx + shape.d_model))


def training_peak_bytes(shape: Shape) -> int:
    """Return the peak memory of training in bytes: one step, and the two traces of an evaluation."""
    return training_bytes(shape) + trace_bytes(shape, 2 * TRACED)


def need(profile: str) -> Need:
    """Return the memory that the largest model of ``profile`` needs."""
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
    """Return a table in Markdown of the memory that each profile needs."""
    found = [need(path.stem) for path in sorted((ROOT / "conf" / "profile").glob("*.yaml"))]
    rows = [(n.profile, n.cell, f"{n.parameters:,}", f"{n.training:.2f}", f"{n.extraction:.2f}") for n in found]
    head = ("profile", "largest model", "parameters", "training (GiB on the device)", "extraction (GiB on the host)")
    return table(head, rows)


if __name__ == "__main__":
    print(needs())
