"""Compare the time and the tokens until the phase change with two other recipes: `python -m experiments.phase_change`

Ours is the default two-layer model as `make repro` trains it. Two other recipes train on the same windows in the same
order. `paper_recipe` has the same sizes and our training step, with the choices of the paper: sinusoids added to
queries and keys only, layer norm, and AdamW for all weights. W_O of later layers starts at 0, as in our recipe.
`plain_loop` is a standard baseline (bench/contenders.py): learned positions in the residual stream, RMS norm, fused
attention and AdamW. Both use a linear warm-up and then a constant learning rate, the middle one of three that were
tried with `--tune`. None of the three led to a phase change within the time limit. Ours is tuned more carefully:
several rates, the schedule and the initialization (docs/log/).

Only training time is counted. The recipes take turns in proportion to their time limits, so that other work on the
machine slows all of them. Ours trains for two evaluations beyond its phase change. The others may train for `--times`
(2.2) times the seconds that ours took in all, which is about 2.5 times the seconds to our phase change. A recipe
without a phase change by then gives a lower bound. Writes results.json, phase_change.csv and phase_change.png.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd
import torch

from bench.contenders import PlainTransformer, adamw_update, autocast
from bench.measuring import THREADS, record
from bench.shapes import Shape
from experiments.curves import draw
from experiments.runs import HERE, Run, Text, default_cell, suite, take_turns
from pathsum.data.tokens import read_tokens
from pathsum.data.windows import Windows
from pipelines.paths import TOKENS

LR, WARMUP = 0.003, 200  # learning rate of AdamW; steps of warm-up
Race = tuple[Run, Sequence[Run]]  # our run, and the runs of the other recipes with the same seed


def ours(seed: int, text: Text) -> Run:
    """Return a run of the default recipe."""
    model, train = default_cell()
    steps = math.ceil(train.tokens / (train.batch * model.n_ctx))
    return suite({"recipe": "ours", "seed": seed}, model, train, text, steps)


def paper_recipe(seed: int, text: Text, lr: float = LR) -> Run:
    """Return a run of the paper's recipe with our training step."""
    model, train = default_cell()
    rates = dict.fromkeys(("lr_attention", "lr_embedding", "lr_unembedding"), lr)
    changed = {"optimizer": "adamw", **rates, "warmup_steps": WARMUP, "decay_share": 0.0}
    model = model.model_copy(update={"positions": "sinusoidal", "norm": "layer"})
    return suite({"recipe": "paper_recipe", "seed": seed}, model, train.model_copy(update=changed), text)


def plain_loop(seed: int, text: Text, lr: float = LR) -> Run:
    """Return a run of ``PlainTransformer`` with AdamW."""
    model, train = default_cell()
    sizes = {name: getattr(model, name) for name in ("n_layers", "n_heads", "d_head", "d_model", "n_ctx")}
    shape = Shape("", batch=train.batch, d_vocab=text.d_vocab, **sizes)
    torch.manual_seed(seed)
    network = PlainTransformer(shape)
    opt = torch.optim.AdamW(network.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.0)

    def step(i: int) -> None:
        opt.param_groups[0]["lr"] = lr * min(1.0, (i + 1) / WARMUP)
        adamw_update(opt, lambda: network.loss(text.batch(seed, i, train.batch)), "cpu", autocast("cpu"))

    return Run({"recipe": "plain_loop", "seed": seed}, step, lambda: text.score(network.patterns), shape.tokens)


RECIPES = {"paper_recipe": paper_recipe, "plain_loop": plain_loop}


def race(first: Run, others: Sequence[Run], times: float) -> None:
    """Train ``first`` and ``others`` in turn, each until its phase change or the end of its recipe.

    Each of ``others`` stops at the latest after ``times`` times the seconds that ``first`` took in all.
    """

    def may_advance(run: Run) -> bool:
        return run is first or not first.done or run.seconds < times * first.seconds

    take_turns([*others, first], may_advance, lambda run: run.seconds / (1 if run is first else times))


def rows(races: Sequence[Race]) -> dict[str, dict[str, Any]]:
    """Return the rows of results.json: medians over seeds and the range of ratios, for seconds and tokens at the phase
    change.

    A run of another recipe without a phase change counts with its last evaluation, and marks the row as a lower bound.
    Empty if a run of ours has no phase change.
    """
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
    """Return a table with one row per evaluation of each run."""
    runs = [run for first, others in races for run in (first, *others)]
    points = pd.DataFrame([run.about | point._asdict() for run in runs for point in run.curve])
    return points.round({"seconds": 2, "prefix_matching": 4})


def tune(text: Text, recipes: list[str], rates: list[float], seconds: float) -> None:
    """Train each of ``recipes`` with each of ``rates`` and seed 0, until the phase change or for ``seconds``, and print
    the results."""
    runs = [(lr, RECIPES[recipe](0, text, lr)) for recipe in recipes for lr in rates]
    take_turns([run for _, run in runs], lambda run: run.seconds < seconds)
    for lr, run in runs:
        change, last = run.change(), run.curve[-1]
        when = f"changed at {change.tokens:,} tokens, {change.seconds:.0f} s" if change else "not changed"
        print(f"{run.about['recipe']:14} {lr:8g}  {when}; {last.tokens:,} tokens: {last.prefix_matching:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument(
        "--times", type=float, default=2.2, help="time limit of the others, as a multiple of all our time"
    )
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--tune", type=float, nargs="+", metavar="RATE", help="only try these learning rates")
    parser.add_argument("--seconds", type=float, default=120, help="with --tune: seconds of training per rate")
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
    record("phase_change", rows(races))


if __name__ == "__main__":
    main()
