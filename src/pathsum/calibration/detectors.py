"""Every detector: what must it find in a world, and what does it find? In the files of the themes, as ``DETECTORS``."""

from __future__ import annotations

import functools
import importlib
import pkgutil

import pathsum.calibration
from pathsum.calibration.units import Detector


@functools.cache
def detectors() -> dict[str, Detector]:
    """Return the detectors of all files of this folder, by name, in alphabetical order of the files."""
    found: dict[str, Detector] = {}
    for module in pkgutil.iter_modules(pathsum.calibration.__path__, "pathsum.calibration."):
        found |= getattr(importlib.import_module(module.name), "DETECTORS", {})
    return found
