"""Compare seconds and tokens to induction heads with two other recipes: `python -m experiments.phase_change`

Ours is the default two-layer model as `make repro` trains it. Two others train on the same windows in the same order:
`paper_recipe` has the same sizes and the suite's own fast step, but the paper's choices: sinusoids in queries and keys
alone, layer norm, and AdamW for everything; W_O of later layers starts at 0 here too. `plain_loop` is a standard
baseline (bench/train_step.py): learned positions in the residual stream, RMS norm, fused attention, AdamW, and bf16
autocast. Their learning rate, after a linear warm-up and without decay, is the middle one of those tried (`--tune`),
none of which reached the change in time.

Seconds are those of training alone. The recipes take turns in proportion to the time that they are given, so that a
slow minute of the machine affects all alike. The others get `--times` as many seconds as ours. A recipe that has not
changed by then gives a lower bound. Writes results.json, phase_change.csv and phase_change.png.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd
import torch

from bench.measuring import THREADS, record
from bench.train_step import PlainTransformer, Shape, adamw_update
from experiments.curves import draw
from experiments.runs import HERE, Run, Text, default_cell, suite, take_turns
from pathsum.data.tokens import read_tokens
from pathsum.data.windows import Windows
from pipelines.paths import TOKENS

LR, WARMUP = 0.003, 200  # of AdamW; steps
Race = tuple[Run, Sequence[Run]]  # ours, and the others of the same seed


def ours(seed: int, text: Text) -> Run:
    model, train = default_cell()
    steps = math.ceil(train.tokens / (train.batch * model.n_ctx))
    return suite({"recipe": "ours", "seed": seed}, model, train, text, steps)


def paper_recipe(seed: int, text: Text, lr: float = LR) -> Run:
    model, train = default_cell()
    rates = dict.fromkeys(("lr_attention", "lr_embedding", "lr_unembedding"), lr)
    changed = {"optimizer": "adamw", **rates, "warmup_steps": WARMUP, "decay_share": 0.0}
    model = model.model_copy(update={"positions": "sinusoidal", "norm": "layer"})
    return suite({"recipe": "paper_recipe", "seed": seed}, model, train.model_copy(update=changed), text)


def plain_loop(seed: int, text: Text, lr: float = LR) -> Run:
    model, train = default_cell()
    sizes = {name: getattr(model, name) for name in ("n_layers", "n_heads", "d_head", "d_model", "n_ctx")}
    shape = Shape("", batch=train.batch, d_vocab=text.d_vocab, **sizes)
    torch.manual_seed(seed)
    network = PlainTransformer(shape)
    opt = torch.optim.AdamW(network.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.0)

    def step(i: int) -> None:
        opt.param_groups[0]["lr"] = lr * min(1.0, (i + 1) / WARMUP)
        adamw_update(opt, lambda: network.loss(text.batch(seed, i, train.batch)))

    return Run({"recipe": "plain_loop", "seed": seed}, step, lambda: text.score(network.patterns), shape.tokens)


RECIPES = {"paper_recipe": paper_recipe, "plain_loop": plain_loop}


def race(first: Run, others: Sequence[Run], times: float) -> None:
    """Train in turn, each of ``others`` until it changes or has had ``times`` the seconds of ``first``."""

    def may_advance(run: Run) -> bool:
        return run is first or not first.done or run.seconds < times * first.seconds

    take_turns([*others, first], may_advance, lambda run: run.seconds / (1 if run is first else times))


def rows(races: Sequence[Race]) -> dict[str, dict[str, Any]]:
    """Compute medians over seeds and the range of ratios. A seed of the others without a change counts with its end:
    theirs and the ratio are then lower bounds. Where a seed of ours has not changed, nothing is compared."""
    found: dict[str, dict[str, Any]] = {}
    mine = [change for first, _ in races if (change := first.change())]
    if len(mine) < len(races):
        return found
    for others in zip(*(others for _, others in races), strict=True):
        theirs = [other.change() or other.curve[-1] for other in others]
        for what, unit, digits in (("seconds", "s", 1), ("tokens", "tokens", None)):
            a, b = ([getattr(point, what) for point in points] for points in (mine, theirs))
            ratios = [y / x for x, y in zip(a, b, strict=True)]
            found[f"phase_change_{what}.{others[0].about['recipe']}"] = {
                "ours": round(statistics.median(a), digits),
                "theirs": round(statistics.median(b), digits),
                "ratio": round(statistics.median(ratios), 2),
                "ratio_range": [round(min(ratios), 2), round(max(ratios), 2)],
                "lower_bound": any(other.change() is None for other in others),
                "seeds": len(races),
                "unit": unit,
            }
    return found


def table(races: Sequence[Race]) -> pd.DataFrame:
    """Return every point of every curve."""
    runs = [run for first, others in races for run in (first, *others)]
    points = pd.DataFrame([run.about | point._asdict() for run in runs for point in run.curve])
    return points.round({"seconds": 2, "prefix_matching": 4})


def tune(text: Text, recipes: list[str], rates: list[float], seconds: float) -> None:
    """Train each recipe with each rate on one seed, in turn, and print the results."""
    runs = [(lr, RECIPES[recipe](0, text, lr)) for recipe in recipes for lr in rates]
    take_turns([run for _, run in runs], lambda run: run.seconds < seconds)
    for lr, run in runs:
        change, last = run.change(), run.curve[-1]
        when = f"changed at {change.tokens:,} tokens, {change.seconds:.0f} s" if change else "not changed"
        print(f"{run.about['recipe']:14} {lr:8g}  {when}; {last.tokens:,} tokens: {last.prefix_matching:.3f}")


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
    text = Text(Windows(tokens.tokens, default_cell()[0].n_ctx), tokens.header.d_vocab)
    if options.tune:
        return tune(text, options.recipes, options.tune, options.seconds)
    races = [(ours(seed, text), [RECIPES[r](seed, text) for r in options.recipes]) for seed in options.seeds]
    for first, others in races:
        race(first, others, options.times)
    points = table(races)
    points.to_csv(HERE / "phase_change.csv", index=False, lineterminator="\n")
    draw(points, HERE / "phase_change.png")
    record(rows(races))


if __name__ == "__main__":
    main()
