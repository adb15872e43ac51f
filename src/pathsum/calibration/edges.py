"""Which edges between its heads does a two-layer model rely on? The truth that composition scores are held against.

A text that asks for an edge need not get it: some models answer lookups by letting each of the two words vote, which
layer 0 can do, and adding the votes up. And models use edges that their text does not ask for.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from pathsum.interventions.run import SIDES, HeadActivation, Run
from pathsum.model.transformer import Transformer

Edge = tuple[str, int, int]  # kind (Q, K or V), head of the first layer, head of the second
Patched = dict[tuple[int, ...], list[HeadActivation]]  # by set of first-layer heads, each head of the second


@torch.no_grad()
def edge_worth(
    model: Transformer, windows: Int[Tensor, "batch window"], places: Bool[Tensor, "batch pos"]
) -> dict[Edge, float]:
    """How much of the loss at ``places`` hangs on each edge? Nats: the larger of what its removal costs, and of what it
    saves where it alone is left of all edges of its kind. The second counts edges that stand in for each other.

    An edge is removed as the second layer's head reads something else where the first layer's head wrote: the mean
    write, or that of another window at the same position. The lower of the two losses counts, as each replacement can
    do harm by being unusual. Patterns are computed again, the norm before the second layer keeps its scale
    (docs/framework.md §5.9). Costs one trace, and a second layer for each kind and set of first-layer heads."""
    targets = windows[:, 1:][places].long()
    clean = Run(model, windows[:, :-1])
    early, late = (range(output.shape[1]) for output in clean.trace.outputs)
    worth: dict[Edge, float] = {}
    whole = _loss(clean, places, targets)
    for kind in SIDES:
        patched = _patched(clean, kind)
        everything = set(product(early, late))

        def without(removed: set[tuple[int, int]], patched: list[Patched] = patched) -> float:
            gone = {b: tuple(a for a in early if (a, b) in removed) for b in late}
            runs = (clean.replace({(1, b): by[a][b] for b, a in gone.items() if a}) for by in patched)
            return min(_loss(run, places, targets) for run in runs)

        nothing = without(everything)
        for edge in everything:
            worth[kind, *edge] = max(without({edge}) - whole, nothing - without(everything - {edge}))
    return worth


@torch.no_grad()
def late_worth(
    model: Transformer, windows: Int[Tensor, "batch window"], places: Bool[Tensor, "batch pos"]
) -> dict[int, float]:
    """How much of the loss at ``places`` depends on each head of the second layer? Nats, as ``edge_worth``: the larger
    of what its removal costs, and of what it saves where it alone is left. A head writes its mean, or what it writes in
    another window. Costs one trace, and an unembedding for each set of heads."""
    targets = windows[:, 1:][places].long()
    clean = Run(model, windows[:, :-1])

    def without(heads: set[int]) -> float:
        runs = (clean.patch_heads({(1, b): other[:, b] for b in heads}) for other in _replacements(clean, 1))
        return min(_loss(run, places, targets) for run in runs)

    every = {head for layer, head in clean.places if layer == 1}
    return {b: max(without({b}) - without(set()), without(every) - without(every - {b})) for b in every}


def _replacements(clean: Run, layer: int) -> tuple[Float[Tensor, "batch head pos d_model"], ...]:
    """What stands in place of a layer's writes: their mean over windows and positions, and those of another window."""
    written = clean.trace.outputs[layer]
    return written.mean((0, 2), keepdim=True).expand_as(written), written.roll(1, 0)


def _patched(clean: Run, kind: str) -> list[Patched]:
    """What each second-layer head does without its ``kind`` of edge from each set of first-layer heads, for each of the
    two replacements."""
    return [
        {
            heads: clean.patched_layer(1, {(kind, (0, a)): other[:, a] for a in heads})
            for heads in _subsets(range(other.shape[1]))
        }
        for other in _replacements(clean, 0)
    ]


def _loss(run: Run, places: Tensor, targets: Tensor) -> float:
    """The loss at ``places``."""
    return cross_entropy(run.read[places] @ run.model.W_U.mT, targets).item()


def _subsets(heads: Iterable[int]) -> list[tuple[int, ...]]:
    sets: list[tuple[int, ...]] = [()]
    for head in heads:
        sets += [(*some, head) for some in sets]
    return sets[1:]
