"""Memory that each profile needs, counted from its sizes: `python -m bench.memory`"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.train_step import Shape
from pathsum.model.positions import SCHEMES, Relative
from pathsum.training.evaluate import TRACED
from pipelines.compose import compose
from pipelines.paths import ROOT

GIB = 2**30


def parameters(shape: Shape) -> int:
    """Numbers that a model of ``shape`` is made of, its biases by distance aside."""
    return 2 * shape.d_vocab * shape.d_model + 4 * shape.n_layers * shape.n_heads * shape.d_head * shape.d_model


def training_bytes(shape: Shape) -> int:
    """Count the peak memory of a step.

    Of each weight, six float32 numbers: itself, its gradient as it comes and as the optimiser reads it, two states, and
    one for copies in bf16. The gradient of the logits in bf16. What layers keep for their way back: the residual stream
    and what is read of it in float32 and bf16; queries, keys, values and what is mixed in bf16, in two layouts; and
    patterns, where there are biases by distance.
    """
    heads = shape.n_heads * shape.d_head
    kept = shape.n_layers * shape.tokens * (2 * 2 * 4 * heads + (4 + 4 + 2 + 2) * shape.d_model)
    patterns = (
        shape.n_layers * shape.batch * shape.n_heads * shape.n_ctx**2 * issubclass(SCHEMES[shape.positions], Relative)
    )
    return 6 * 4 * parameters(shape) + 2 * shape.tokens * shape.d_vocab + kept + patterns


def trace_bytes(shape: Shape, windows: int) -> int:
    """Of a trace in float32: logits, every pattern and what every head writes."""
    heads = shape.n_layers * shape.n_heads
    return 4 * windows * shape.n_ctx * (shape.d_vocab + heads * (shape.n_ctx + shape.d_model))


def evaluation_bytes(shape: Shape) -> int:
    """Count the peak memory of an evaluation on the training device: two traces."""
    return trace_bytes(shape, 2 * TRACED)


@dataclass(frozen=True)
class Need:
    """Of a profile's largest cell, in GiB."""

    profile: str
    cell: str
    parameters: int
    training: float  # on the device: a step, and an evaluation beside the weights
    extraction: float  # on a processor: two traces, which are its largest part


def composed(profile: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "params.yaml"
        compose(path, [f"profile={profile}"])
        values: dict[str, Any] = yaml.safe_load(path.read_text())
    return values


def shapes(values: dict[str, Any]) -> dict[str, Shape]:
    """The cells of a composition."""
    names = ("n_layers", "n_heads", "d_head", "d_model", "n_ctx", "positions")
    d_vocab = values["tokenizer"]["d_vocab"]
    return {
        name: Shape(name, batch=cell["train"]["batch"], d_vocab=d_vocab, **{key: cell["model"][key] for key in names})
        for name, cell in values["cells"].items()
    }


def need(profile: str) -> Need:
    values = composed(profile)
    cells, how = shapes(values), values["extract"]
    largest = max(cells.values(), key=lambda s: training_bytes(s) + evaluation_bytes(s))
    training = training_bytes(largest) + evaluation_bytes(largest)
    extraction = trace_bytes(largest, how["windows"] + how["repeated_windows"])
    return Need(profile, largest.name, parameters(largest), training / GIB, extraction / GIB)


def needs() -> list[Need]:
    return [need(path.stem) for path in sorted((ROOT / "conf" / "profile").glob("*.yaml"))]


def main() -> None:
    print(f"{'profile':9} {'largest cell':12} {'parameters':>12} {'training':>10} {'extraction':>11}  (GiB)")
    for n in needs():
        print(f"{n.profile:9} {n.cell:12} {n.parameters:12,} {n.training:10.2f} {n.extraction:11.2f}")


if __name__ == "__main__":
    main()
