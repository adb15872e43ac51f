"""Models that train in turn until each has its phase change, and the text that they train on.

In this folder, the phase change is the first of three successive evaluations at which the prefix matching of the best
head is at least FORMED.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pathsum.config import ModelConfig, TrainConfig
from pathsum.data.repeated import repeated_random
from pathsum.data.windows import Windows, order
from pathsum.model.transformer import Transformer
from pathsum.probes.induction import prefix_matching
from pathsum.records.results import FORMED
from pathsum.training.device import product_dtype
from pathsum.training.optimizer import optimizers, rate, set_rate
from pathsum.training.step import update
from pipelines.paths import PARAMS, ROOT, params

HERE = Path(__file__).parent
CELL = "L2H4S5"
EVERY, HELD = 50_000, 3  # tokens between evaluations; evaluations in a row that must reach FORMED


@dataclass
class Text:
    """Training windows, and repeated random tokens on which prefix matching is measured."""

    windows: Windows
    d_vocab: int

    @cached_property
    def present(self) -> Tensor:
        """Return 1 for each token that occurs in the training windows, otherwise 0."""
        return self.windows.present(self.d_vocab)

    @cached_property
    def repeated(self) -> tuple[Tensor, int]:
        """Return the repeated random tokens and the length of a copy. They are the same for all models on this text."""
        generator = torch.Generator().manual_seed(0)
        return repeated_random(16, self.windows.n_ctx, self.d_vocab, generator, self.present)

    def batch(self, seed: int, step: int, size: int) -> Tensor:
        """Return the windows of one training step. They are the same for all models with the same seed."""
        return self.windows.batch(order(seed, step, size, len(self.windows)))

    @torch.no_grad()
    def score(self, patterns: Callable[[Tensor], Iterable[Tensor]]) -> float:
        """Return the prefix matching of the best head (0 to 1). ``patterns`` maps tokens to each layer's attention
        patterns."""
        tokens, block = self.repeated
        return max(float(prefix_matching(pattern, block).max()) for pattern in patterns(tokens))


class Point(NamedTuple):
    """One evaluation of a run."""

    tokens: int
    seconds: float  # of training alone
    prefix_matching: float  # of the best head


@dataclass
class Run:
    """A model in training, with its training time and its evaluations."""

    about: dict[str, Any]  # settings that the experiment varies, and the seed
    step: Callable[[int], object]  # trains on batch i
    score: Callable[[], float]  # prefix matching of the best head
    tokens_per_step: int
    steps: float = math.inf  # number of steps of the recipe
    every: int = EVERY  # tokens between evaluations
    seconds: float = 0.0  # of training up to now
    at: int = 0  # number of steps up to now
    curve: list[Point] = field(default_factory=list)

    def advance(self) -> None:
        """Train up to the next evaluation, and evaluate. The time of the evaluation is not counted."""
        start = time.perf_counter()
        for _ in range(math.ceil(self.every / self.tokens_per_step)):
            self.step(self.at)
            self.at += 1
        self.seconds += time.perf_counter() - start
        self.curve.append(Point(self.at * self.tokens_per_step, self.seconds, self.score()))

    def change(self) -> Point | None:
        """Return the phase change: the first of ``HELD`` successive evaluations with prefix matching of at least
        FORMED.

        None if there is none.
        """
        held: list[Point] = []
        for point in self.curve:
            held = [*held, point] if point.prefix_matching >= FORMED else []
            if len(held) == HELD:
                return held[0]
        return None

    @property
    def done(self) -> bool:
        """Return whether the run has had its phase change, or its recipe has ended."""
        return self.change() is not None or self.at >= self.steps


def default_cell() -> tuple[ModelConfig, TrainConfig]:
    """Return the configuration of the two-layer model CELL of params.yaml. Exit with a message if it has none."""
    cells = params(ROOT)["cells"]
    if CELL not in cells:
        sys.exit(f"error: {PARAMS}: expected the model {CELL}, got {', '.join(cells)}; run `make params`")
    cell = cells[CELL]
    return ModelConfig(**cell["model"]), TrainConfig(**cell["train"])


def suite(about: dict[str, Any], model: ModelConfig, train: TrainConfig, text: Text, steps: float = math.inf) -> Run:
    """Return a run of the suite's transformer with the suite's training step, seeded by ``about["seed"]``.

    ``steps`` is the length of the recipe and of its learning-rate schedule. Without it, the rates do not decay.
    """
    network = Transformer(model, text.d_vocab, torch.Generator().manual_seed(about["seed"]))
    opts, span = optimizers(network, train), 10**9 if math.isinf(steps) else int(steps)
    autocast = train.autocast and product_dtype("cpu") == torch.bfloat16

    def step(i: int) -> None:
        set_rate(opts, rate(i + 1, span, train))
        update(network, opts, text.batch(about["seed"], i, train.batch), autocast)

    def score() -> float:
        return text.score(lambda tokens: network.trace(tokens).patterns)

    return Run(about, step, score, train.batch * model.n_ctx, steps)


def take_turns(
    runs: Sequence[Run], may_advance: Callable[[Run], bool], cost: Callable[[Run], float] = lambda run: run.seconds
) -> None:
    """Advance, again and again, the run with the smallest ``cost``, until every run is done or may not advance."""
    while ahead := [run for run in runs if not run.done and may_advance(run)]:
        least = min(ahead, key=cost)
        least.advance()
        tokens, seconds, score = least.curve[-1]
        label = ", ".join(f"{name} {value}" for name, value in least.about.items())
        print(f"{label}: {tokens / 1e6:5.2f} M tokens {seconds:6.1f} s  {score:.2f}", flush=True)


def until_changed(runs: Sequence[Run], minutes: float) -> list[dict[str, Any]]:
    """Train all runs in turn until each is done or ``minutes`` have passed.

    Return, for each run that was evaluated, its settings, its tokens at the phase change (None without one) and its
    tokens seen.
    """
    end = time.perf_counter() + 60 * minutes
    take_turns(runs, lambda _: time.perf_counter() < end)
    return [
        run.about | {"tokens": change.tokens if (change := run.change()) else None, "tokens_seen": run.curve[-1].tokens}
        for run in runs
        if run.curve
    ]


def save(name: str, found: dict[str, Any]) -> None:
    """Write ``found`` to the file ``name`` in experiments/, and print it without the entry "cells"."""
    (HERE / name).write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({key: value for key, value in found.items() if key != "cells"}, indent=1))
