"""Find every detector. It yields units: each is one thing that is planted or not, and found or not. What cannot be
known is left out."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pathsum.calibration
from pathsum.calibration.world import PlantedModel

T = TypeVar("T")
Unit = tuple[bool, bool]  # planted, found
Detector = Callable[[PlantedModel], Iterator[Unit]]


@functools.cache
def detectors() -> dict[str, Detector]:
    """Return the mappings ``DETECTORS`` of all files of this folder as one, in alphabetical order of the files."""
    found: dict[str, Detector] = {}
    for module in pkgutil.iter_modules(pathsum.calibration.__path__, "pathsum.calibration."):
        found |= getattr(importlib.import_module(module.name), "DETECTORS", {})
    return found


def compared(planted: set[T], found: set[T]) -> Iterator[Unit]:
    """Return a unit for each that was planted or found."""
    return ((unit in planted, unit in found) for unit in planted | found)


def some_head(planted: bool, heads: Iterable[bool]) -> Iterator[Unit]:
    """Yield one unit where some head of a layer must have the structure, or else one for each head."""
    if planted:
        yield True, any(heads)
    else:
        yield from ((False, found) for found in heads)


def copies(planted: PlantedModel, layer: int) -> bool:
    """Tell whether a head of the layer must copy: text repeats itself, and keys can hold the previous token."""
    model = planted.world.config.model
    able = model.smeared_keys if model.n_layers == 1 else layer == 1
    return able and planted.world.config.corpus.repeat_share > 0
