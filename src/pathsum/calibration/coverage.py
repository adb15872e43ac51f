"""Measure how often 95 % intervals from few windows hold the value on many (docs/framework.md §11.5)."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.calibration.edges import Edge
from pathsum.calibration.score import interval
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.extraction.causal import WINDOWS, Bench
from pathsum.interventions.run import SIDES, Place, Run
from pathsum.records.calibration import CoverageRow
from pathsum.statistics.bootstrap import mean_intervals, ratio_interval
from pathsum.text.repeated import repeated_random

MANY = 192  # windows whose mean effect is the true value
SIZES = (WINDOWS, 64)  # windows of an interval
SAMPLES = 10  # samples of each size
EVERY = 4  # measured on every fourth seed; a model takes 0.8 s
METHOD = "resample"
TEXT, COPIES = "held-out text", "second copy"

Held = dict[tuple[str, str, int], list[bool]]  # by text, quantity and windows: whether each interval holds the value


@torch.no_grad()
def held(model: SyntheticModel) -> Held:
    """Return whether intervals from few windows hold the value on ``MANY`` (192) windows, for effects of ablations."""
    found: Held = defaultdict(list)
    if not model.edges or not model.learned or model.text.seed % EVERY:
        return found
    generator = torch.Generator().manual_seed(model.text.seed)
    for text, bench in benches(model, generator).items():
        heads, edges = effects(bench)
        late = max((place for place in heads if place[0] == 1), key=lambda place: heads[place].mean().item())
        part = max((e for e in edges if e[2] == late[1]), key=lambda e: edges[e].mean().item())
        each = {"head": torch.stack([*heads.values()]), "edge": torch.stack([*edges.values()])}
        for size in SIZES * SAMPLES:
            some, units = torch.randint(MANY, (size,), generator=generator), torch.arange(size)
            for quantity, values in each.items():
                intervals = mean_intervals(values[:, some], units, generator)
                truth = values.mean(1).tolist()
                found[text, quantity, size] += [i.low <= t <= i.high for i, t in zip(intervals, truth, strict=True)]
            _, low, high = ratio_interval(edges[part][some], heads[late][some], units, generator)
            share = (edges[part].mean() / heads[late].mean()).item()
            found[text, "share", size].append(low <= share <= high)
    return found


def benches(model: SyntheticModel, generator: torch.Generator) -> dict[str, Bench]:
    """Return ``MANY`` held-out windows and as many windows of repeated random tokens, with the model's run on them."""
    trained, windows = model.trained.model, model.text.held_out[:MANY]
    rotation = torch.eye(trained.config.d_model)  # the control is not used
    copies, block = repeated_random(MANY, trained.config.n_ctx, len(model.text.words), generator, model.data.present)
    scored = slice(block + 1, 2 * block)
    return {
        TEXT: Bench.of(trained, windows[:, :-1], windows[:, 1:], slice(None), rotation),
        COPIES: Bench.of(trained, copies, copies.roll(-1, 1), scored, rotation),
    }


def effects(bench: Bench) -> tuple[dict[Place, Float[Tensor, "batch"]], dict[Edge, Float[Tensor, "batch"]]]:
    """Return the rise of each window's loss when a head or an edge is ablated by ``METHOD``, in nats per token."""
    clean = bench.clean
    whole = bench.losses(clean).mean(1)

    def rise(run: Run) -> Float[Tensor, "batch"]:
        return bench.losses(run).mean(1) - whole

    edges = dict[Edge, Float[Tensor, "batch"]]()
    for early in (place for place in clean.places if place[0] == 0):
        for kind in SIDES:
            patched = clean.patched_layer(1, {(kind, early): bench.instead(early, METHOD)})
            edges |= {(kind, early[1], h): rise(clean.replace({(1, h): new})) for h, new in enumerate(patched)}
    return {place: rise(bench.ablated([place], METHOD)) for place in clean.places}, edges


def coverage(models: Sequence[Held]) -> list[CoverageRow]:
    """Return the share of intervals that hold the value, over all models, by text, quantity and number of windows."""
    some = [model for model in models if model]
    rows = []
    for key in dict.fromkeys(key for model in some for key in model):
        hits, n = [sum(model[key]) for model in some], [len(model[key]) for model in some]
        share, low, high = interval(hits, n)
        rows.append(CoverageRow(*key, MANY, sum(n), sum(hits), share, low, high, len(some)))
    return rows
