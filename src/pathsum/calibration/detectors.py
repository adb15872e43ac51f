"""The detectors of all files of this folder.

A detector yields units. A unit says of one structure whether it is present in the model, and whether it is found. A
structure gives no unit if its presence is not known.
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
    """Return all detectors by name, collected from the mappings ``DETECTORS`` of the files in alphabetical order."""
    found: dict[str, Detector] = {}
    for module in pkgutil.iter_modules(pathsum.calibration.__path__, "pathsum.calibration."):
        found |= getattr(importlib.import_module(module.name), "DETECTORS", {})
    return found


def compared(present: set[T], found: set[T]) -> Iterator[Unit]:
    """Yield a unit for each element of ``present`` or ``found``."""
    return ((unit in present, unit in found) for unit in present | found)


def some_head(present: bool, heads: Iterable[bool]) -> Iterator[Unit]:
    """Yield one unit for a layer if some head of it must have the structure (``present``), otherwise one unit per
    head."""
    if present:
        yield True, any(heads)
    else:
        yield from ((False, found) for found in heads)


def copies(model: SyntheticModel, layer: int) -> bool:
    """Return whether some head of the layer must copy."""
    config = model.text.config
    able = config.model.smeared_keys if config.model.n_layers == 1 else layer == 1
    return able and config.corpus.repeat_share > 0
