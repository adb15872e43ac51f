"""Find the detectors of all files of this folder.

A detector yields units. A unit is one structure that is present in the model or not, and that is found or not. A
structure whose presence is not known gives no unit.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pathsum.calibration
from pathsum.calibration.synthetic import SyntheticModel

T = TypeVar("T")
Unit = tuple[bool, bool]  # present, found
Detector = Callable[[SyntheticModel], Iterator[Unit]]


@functools.cache
def detectors() -> dict[str, Detector]:
    """Return all detectors by name: the mappings ``DETECTORS`` of all files of this folder, in alphabetical order of
    files."""
    found: dict[str, Detector] = {}
    for module in pkgutil.iter_modules(pathsum.calibration.__path__, "pathsum.calibration."):
        found |= getattr(importlib.import_module(module.name), "DETECTORS", {})
    return found


def compared(present: set[T], found: set[T]) -> Iterator[Unit]:
    """Yield a unit for each element that is in ``present`` or in ``found``."""
    return ((unit in present, unit in found) for unit in present | found)


def some_head(present: bool, heads: Iterable[bool]) -> Iterator[Unit]:
    """Yield one unit for a layer if at least one of its heads must have the structure, and one unit per head if none
    may.

    ``heads`` tells which heads of the layer have been found to have the structure.
    """
    if present:
        yield True, any(heads)
    else:
        yield from ((False, found) for found in heads)


def copies(model: SyntheticModel, layer: int) -> bool:
    """Return whether some head of the layer must copy.

    This is the case if the text contains repeats and the layer can do induction, because its keys can hold the
    previous token: in the second layer, or in a single layer with smeared keys.
    """
    config = model.text.config
    able = config.model.smeared_keys if config.model.n_layers == 1 else layer == 1
    return able and config.corpus.repeat_share > 0
