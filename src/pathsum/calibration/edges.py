"""Measure which edges between its heads a two-layer model relies on: the ground truth of composition scores.

A text that asks for an edge need not force it. Some models answer lookups by letting each of the two words vote, which
layer 0 can do, and adding the votes. And models use edges that their text does not ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from pathsum.interventions.run import SIDES, HeadActivation, Run
from pathsum.model.transformer import Transformer

T = TypeVar("T")
Edge = tuple[str, int, int]  # kind (Q, K or V), head of the first layer, head of the second
Patched = dict[tuple[int, ...], list[HeadActivation]]  # by set of first-layer heads, each head of the second


@torch.no_grad()
def edge_worth(
    model: Transformer, windows: Int[Tensor, "batch window"], places: Bool[Tensor, "batch pos"]
) -> dict[Edge, float]:
    """Measure the effect of each edge on the loss at ``places``, in nats (``_effects``).

    An edge is removed by replacing what the second layer's head reads of the first layer's head: by its mean output, or
    by its output in another window at the same position. Patterns are computed again; the norm before the second layer
    keeps its scale (docs/framework.md §5.9). Costs one trace, and a second layer for each kind and set of first-layer
    heads."""
    clean, effects = Run(model, windows[:, :-1]), dict[Edge, float]()
    early, late = (range(output.shape[1]) for output in clean.trace.outputs)
    for kind in SIDES:
        patched = _patched(clean, kind)

        def without(removed: set[tuple[int, int]], patched: list[Patched] = patched) -> list[Run]:
            gone = {b: tuple(a for a in early if (a, b) in removed) for b in late}
            return [clean.replace({(1, b): by[a][b] for b, a in gone.items() if a}) for by in patched]

        found = _effects(without, set(product(early, late)), windows, places)
        effects |= {(kind, *edge): nats for edge, nats in found.items()}
    return effects


@torch.no_grad()
def late_worth(
    model: Transformer, windows: Int[Tensor, "batch window"], places: Bool[Tensor, "batch pos"]
) -> dict[int, float]:
    """Measure how much the loss at ``places`` depends on each head of the second layer, in nats (``_effects``).

    An ablated head writes its mean output, or its output in another window. Costs one trace, and one unembedding for
    each set of ablated heads and each replacement.
    """
    clean = Run(model, windows[:, :-1])

    def without(heads: set[int]) -> list[Run]:
        return [clean.patch_heads({(1, b): other[:, b] for b in heads}) for other in _replacements(clean, 1)]

    return _effects(without, {head for layer, head in clean.places if layer == 1}, windows, places)


def _effects(without: Callable[[set[T]], list[Run]], parts: set[T], windows: Tensor, places: Tensor) -> dict[T, float]:
    """Return the larger of two effects of each part: the cost of its removal, and the loss reduction where it alone is
    left. The second counts parts that can replace each other. ``without`` runs the model without some parts, once per
    kind of replacement. The lowest loss counts, since each replacement can do harm by being unusual."""
    targets = windows[:, 1:][places].long()

    def loss(removed: set[T]) -> float:
        return min(cross_entropy(run.read[places] @ run.model.W_U.mT, targets).item() for run in without(removed))

    whole, nothing = loss(set()), loss(parts)
    return {part: max(loss({part}) - whole, nothing - loss(parts - {part})) for part in parts}


def _replacements(clean: Run, layer: int) -> tuple[Float[Tensor, "batch head pos d_model"], ...]:
    """Return what replaces a layer's outputs: their mean over windows and positions, and those of another window."""
    written = clean.trace.outputs[layer]
    return written.mean((0, 2), keepdim=True).expand_as(written), written.roll(1, 0)


def _patched(clean: Run, kind: str) -> list[Patched]:
    """Return what each second-layer head does without its ``kind`` of edge from each set of first-layer heads, for each
    of the two replacements."""
    early = range(clean.trace.outputs[0].shape[1])
    sets = [heads for size in early for heads in combinations(early, size + 1)]
    return [
        {heads: clean.patched_layer(1, {(kind, (0, a)): other[:, a] for a in heads}) for heads in sets}
        for other in _replacements(clean, 0)
    ]
