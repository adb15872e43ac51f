"""Units: each is one thing that is planted or not, and found or not. What cannot be known is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from pathsum.calibration.world import PlantedModel

T = TypeVar("T")
Unit = tuple[bool, bool]  # planted, found
Detector = Callable[[PlantedModel], Iterator[Unit]]


def compared(planted: set[T], found: set[T]) -> Iterator[Unit]:
    """Return a unit for each that was planted or found."""
    return ((unit in planted, unit in found) for unit in planted | found)


def by_layer(planted: PlantedModel, heads: list[tuple[int, bool]]) -> Iterator[tuple[int, list[bool]]]:
    """Return each layer with what was found of its heads."""
    for layer in range(planted.world.config.model.n_layers):
        yield layer, [found for at, found in heads if at == layer]


def copies(planted: PlantedModel, layer: int) -> bool:
    """Whether a head of the layer must copy: text repeats itself, and keys can know what stood before them."""
    model = planted.world.config.model
    able = model.smeared_keys if model.n_layers == 1 else layer == 1
    return able and planted.world.config.corpus.repeat_share > 0
