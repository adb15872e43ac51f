"""Seconds and tokens to induction heads, against two other recipes: `python -m experiments.phase_change`

Ours is the default two-layer cell as `make repro` trains it. Beside it, on the same windows in the same order:
`paper_recipe`, the same sizes in the suite's own fast step, but with the paper's choices: sinusoids in queries and keys
alone, layer norm, AdamW on everything; and `plain_loop`, the model that one writes first (bench/train_step.py: learnt
positions in the residual stream, RMS norm, fused attention, AdamW, bf16 autocast). Their rate, after a linear warm-up
and without decay, is the middle one of those tried (`--tune`), none of which came to the change in time. W_O of later
layers starts at 0 in `paper_recipe` too.

A model has changed when its best head's prefix matching is 0.3, and still is at the next two evaluations. Seconds are
those of training alone. The recipes take turns in proportion to the time they are given, so that a slow minute of the
machine is everyone's: the others get K times the seconds that ours takes, and one that has not changed by then is given
as a lower bound. Writes results.json, phase_change.csv and phase_change.png.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pipelines  # noqa: F401 (first: threads that wait must not spin)

import torch  # isort: skip
import torch.nn.functional as F  # isort: skip
import yaml  # isort: skip
from torch import Tensor  # isort: skip

from experiments.curves import Point, draw, write_points  # isort: skip
from pathsum.training.device import product_dtype  # isort: skip
from bench.train_step import PARAMS, RESULTS, THREADS, PlainTransformer, Shape, machine  # isort: skip
from pathsum.probes.induction import prefix_matching  # isort: skip
from pathsum.config import ModelConfig, TrainConfig  # isort: skip
from pathsum.data.repeated import repeated_random  # isort: skip
from pathsum.data.tokens import read_tokens  # isort: skip
from pathsum.data.windows import Windows, order  # isort: skip
from pathsum.model.transformer import Transformer  # isort: skip
from pathsum.records.results import FORMED  # isort: skip
from pathsum.training.optimizer import optimizers, rate, set_rate  # isort: skip
from pathsum.training.step import update  # isort: skip
from pipelines.paths import TOKENS  # isort: skip

CELL = "L2H4S2"
EVERY, HELD = 50_000, 3  # tokens between evaluations; how many in a row must have it
RATES = {"paper_recipe": 0.003, "plain_loop": 0.003}  # AdamW's
WARMUP = 200  # steps


@dataclass
class Text:
    """The training windows and the repeated tokens of all models."""

    windows: Windows
    d_vocab: int
    repeated: Tensor
    block: int

    @classmethod
    def of(cls, windows: Windows, d_vocab: int) -> Text:
        return cls(windows, d_vocab, *probe(windows.n_ctx, d_vocab, windows.present(d_vocab)))

    def batch(self, seed: int, step: int, size: int) -> Tensor:
        return self.windows.batch(order(seed, step, size, len(self.windows)))

    @torch.no_grad()
    def score(self, patterns: Callable[[Tensor], Any]) -> float:
        """Return the prefix matching of the best head."""
        return max(float(prefix_matching(p, self.block).max()) for p in patterns(self.repeated))


def probe(n_ctx: int, d_vocab: int, present: Tensor) -> tuple[Tensor, int]:
    """Return repeated random tokens, always the same, of those ``present``, and the length of a copy."""
    return repeated_random(16, n_ctx, d_vocab, torch.Generator().manual_seed(0), present)


@dataclass
class Runner:
    """A model in training, with its seconds and its curve."""

    recipe: str
    seed: int
    step: Callable[[int], object]  # trains on batch i
    score: Callable[[], float]
    tokens_per_step: int
    steps: float = math.inf  # after which its recipe ends
    every: int = EVERY
    seconds: float = 0.0
    at: int = 0
    curve: list[Point] = field(default_factory=list)

    def advance(self) -> None:
        """Train to the next evaluation, whose time is not counted."""
        start = time.perf_counter()
        for _ in range(math.ceil(self.every / self.tokens_per_step)):
            self.step(self.at)
            self.at += 1
        self.seconds += time.perf_counter() - start
        self.curve.append(Point(self.recipe, self.seed, self.at * self.tokens_per_step, self.seconds, self.score()))

    def change(self) -> Point | None:
        """Return the first of ``HELD`` evaluations in a row at or above FORMED; None before."""
        held: list[Point] = []
        for point in self.curve:
            held = [*held, point] if point.prefix_matching >= FORMED else []
            if len(held) == HELD:
                return held[0]
        return None

    @property
    def done(self) -> bool:
        return self.change() is not None or self.at >= self.steps


def suite(recipe: str, seed: int, model: ModelConfig, train: TrainConfig, text: Text, steps: float) -> Runner:
    """Return a model trained by the suite's own step."""
    network = Transformer(model, text.d_vocab, torch.Generator().manual_seed(seed))
    opts, span = optimizers(network, train), 10**9 if math.isinf(steps) else int(steps)

    autocast = train.autocast and product_dtype("cpu") == torch.bfloat16

    def step(i: int) -> None:
        set_rate(opts, rate(i + 1, span, train))
        update(network, opts, text.batch(seed, i, train.batch), autocast)

    return Runner(
        recipe, seed, step, lambda: text.score(lambda t: network.trace(t).patterns), train.batch * model.n_ctx, steps
    )


def ours(seed: int, text: Text) -> Runner:
    model, train = default_cell()
    return suite("ours", seed, model, train, text, math.ceil(train.tokens / (train.batch * model.n_ctx)))


def paper_recipe(seed: int, text: Text, lr: float = RATES["paper_recipe"]) -> Runner:
    model, train = default_cell()
    rates = dict.fromkeys(("lr_attention", "lr_embedding", "lr_unembedding"), lr)
    changed = {"optimizer": "adamw", **rates, "warmup_steps": WARMUP, "decay_share": 0.0}
    model = model.model_copy(update={"positions": "sinusoidal", "norm": "layer"})
    return suite("paper_recipe", seed, model, train.model_copy(update=changed), text, math.inf)


def plain_loop(seed: int, text: Text, lr: float = RATES["plain_loop"]) -> Runner:
    model, train = default_cell()
    shape = Shape(
        "", model.n_layers, train.batch, model.n_heads, model.d_head, model.d_model, model.n_ctx, text.d_vocab
    )
    torch.manual_seed(seed)
    network = PlainTransformer(shape)
    opt = torch.optim.AdamW(network.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.0)

    def step(i: int) -> float:
        batch = text.batch(seed, i, train.batch)
        opt.param_groups[0]["lr"] = lr * min(1.0, (i + 1) / WARMUP)
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(network(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss.item()

    return Runner("plain_loop", seed, step, lambda: text.score(network.patterns), shape.tokens)


RECIPES = {"paper_recipe": paper_recipe, "plain_loop": plain_loop}


def default_cell() -> tuple[ModelConfig, TrainConfig]:
    cell = yaml.safe_load(PARAMS.read_text())["cells"][CELL]
    return ModelConfig(**cell["model"]), TrainConfig(**cell["train"])


def race(first: Runner, others: list[Runner], times: float) -> None:
    """Train in turn, each of ``others`` until it changes or has ``times`` the seconds of ``first``."""
    while True:
        limit = times * first.seconds if first.done else math.inf
        ahead = [r for r in others if not r.done and r.seconds < limit] + [first] * (not first.done)
        if not ahead:
            return
        least = min(ahead, key=lambda r: r.seconds / (1 if r is first else times))
        least.advance()
        print(f"{least.recipe:14} seed {least.seed}  {least.at * least.tokens_per_step / 1e6:5.2f} M tokens "
              f"{least.seconds:6.1f} s  {least.curve[-1].prefix_matching:.2f}", flush=True)  # fmt: skip


def rows(races: list[tuple[Runner, list[Runner]]]) -> dict[str, dict[str, Any]]:
    """Compute medians over seeds and the range of ratios. A seed without a change counts with its end: theirs and the
    ratio are then lower bounds."""
    found: dict[str, dict[str, Any]] = {}
    for i, recipe in enumerate(r.recipe for r in races[0][1]):
        pairs = [(first.change(), others[i]) for first, others in races]
        if any(mine is None for mine, _ in pairs):
            continue  # ours has not changed: there is nothing to compare
        theirs = [other.change() or other.curve[-1] for _, other in pairs]
        for what, unit in (("seconds", "s"), ("tokens", "tokens")):
            of = [(getattr(mine, what), getattr(their, what)) for (mine, _), their in zip(pairs, theirs, strict=True)]
            ratios = [their / mine for mine, their in of]
            found[f"phase_change_{what}.{recipe}"] = {
                "ours": round(statistics.median(mine for mine, _ in of), 1 if what == "seconds" else None),
                "theirs": round(statistics.median(their for _, their in of), 1 if what == "seconds" else None),
                "ratio": round(statistics.median(ratios), 2),
                "ratio_range": [round(min(ratios), 2), round(max(ratios), 2)],
                "lower_bound": any(other.change() is None for _, other in pairs),
                "seeds": len(pairs),
                "unit": unit,
            }
    return found


def tune(text: Text, recipes: list[str], rates: list[float], seconds: float) -> None:
    """Print the progress of each recipe with each rate, on one seed, in turn."""
    runners = [(lr, RECIPES[recipe](0, text, lr)) for recipe in recipes for lr in rates]
    while ahead := [r for _, r in runners if not r.done and r.seconds < seconds]:
        min(ahead, key=lambda r: r.seconds).advance()
    for lr, runner in runners:
        change, last = runner.change(), runner.curve[-1]
        when = f"changed at {change.tokens:,} tokens, {change.seconds:.0f} s" if change else "not changed"
        print(f"{runner.recipe:14} {lr:8g}  {when}; {last.tokens:,} tokens: {last.prefix_matching:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--times", type=float, default=5.1, help="seconds of the others, as a multiple of ours")
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--tune", type=float, nargs="+", metavar="RATE", help="try these rates instead")
    parser.add_argument("--seconds", type=float, default=120, help="of each trial, with --tune")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    tokens = read_tokens(TOKENS / "train.bin")
    text = Text.of(Windows(tokens.tokens, default_cell()[0].n_ctx), tokens.header.d_vocab)
    if options.tune:
        return tune(text, options.recipes, options.tune, options.seconds)
    races = [(ours(seed, text), [RECIPES[r](seed, text) for r in options.recipes]) for seed in options.seeds]
    for first, others in races:
        race(first, others, options.times)
    points = [point for first, others in races for runner in (first, *others) for point in runner.curve]
    write_points(points)
    draw(points)
    found = json.loads(RESULTS.read_text()) | {n: r | {"machine": machine()} for n, r in rows(races).items()}
    RESULTS.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
