"""Measure which edges between heads a two-layer model relies on, the ground truth for composition scores, which the
rules of the text do not determine (docs/framework.md §11.2)."""

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
Edge = tuple[str, int, int]  # kind (Q, K or V), head of the first layer, head of the second layer
Patched = dict[tuple[int, ...], list[HeadActivation]]  # all second-layer heads, by set of removed first-layer heads


@torch.no_grad()
def edge_effects(
    model: Transformer, windows: Int[Tensor, "batch window"], places: Bool[Tensor, "batch pos"]
) -> dict[Edge, float]:
    """Return the effect of each edge of a two-layer model on the loss of the targets at ``places``, in nats."""
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
def late_head_effects(
    model: Transformer, windows: Int[Tensor, "batch window"], places: Bool[Tensor, "batch pos"]
) -> dict[int, float]:
    """Return the effect of each second-layer head on the loss of the targets at ``places``, in nats."""
    clean = Run(model, windows[:, :-1])

    def without(heads: set[int]) -> list[Run]:
        return [clean.patch_heads({(1, b): other[:, b] for b in heads}) for other in _replacements(clean, 1)]

    return _effects(without, {head for layer, head in clean.places if layer == 1}, windows, places)


def _effects(without: Callable[[set[T]], list[Run]], parts: set[T], windows: Tensor, places: Tensor) -> dict[T, float]:
    """Return the effect of each part (edge or head) on the loss, by the formula of docs/framework.md §11.2."""
    targets = windows[:, 1:][places].long()

    def loss(removed: set[T]) -> float:
        return min(cross_entropy(run.read[places] @ run.model.W_U.mT, targets).item() for run in without(removed))

    whole, nothing = loss(set()), loss(parts)
    return {part: max(loss({part}) - whole, nothing - loss(parts - {part})) for part in parts}


def _replacements(clean: Run, layer: int) -> tuple[Float[Tensor, "batch head pos d_model"], ...]:
    """Return the mean of a layer's writes over windows and positions, and its writes in another window."""
    written = clean.trace.outputs[layer]
    return written.mean((0, 2), keepdim=True).expand_as(written), written.roll(1, 0)


def _patched(clean: Run, kind: str) -> list[Patched]:
    """Return all second-layer heads whose queries, keys or values (``kind``) do not read a set of first-layer heads."""
    early = range(clean.trace.outputs[0].shape[1])
    sets = [heads for size in early for heads in combinations(early, size + 1)]
    return [
        {heads: clean.patched_layer(1, {(kind, (0, a)): other[:, a] for a in heads}) for heads in sets}
        for other in _replacements(clean, 0)
    ]
