"""Themes of the report: each has one section, its figures, the records behind them, and its detectors.

Each file of ``themes/`` holds one as ``THEME``; ``pathsum.claims.themes`` has their order.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pathsum.claims.themes import THEMES
from pathsum.records.calibration import CalibrationRow
from pathsum.records.results import Results
from pathsum.report.document import Section
from pathsum.report.figures.base import Figure

Figures = Mapping[str, Figure]


@dataclass(frozen=True)
class DetectorText:
    """A calibrated detector in the words of the report: its name, its ground truth, and what counts as found."""

    name: str
    criterion: str


@dataclass(frozen=True)
class Theme:
    """One section of the report, with what else belongs to it."""

    title: str
    section: Callable[[Results, Figures], Section]
    figures: tuple[Callable[[Results], Figure | None], ...] = ()
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Records behind a figure or table; one that is not here shows the record of its own name."""
    detectors: Mapping[str, DetectorText] = field(default_factory=dict)
    """Detectors of this theme, by their name in the calibration's records."""
    relies_on: tuple[str, ...] = ()
    """Detectors that the section relies on: it has a note on each that is not certain."""
    tables: tuple[str, ...] = ()
    """Files under tables/ that dashboards show with the section."""
    opens_part: bool = False
    """The section begins a new part of the page."""


@functools.cache
def themes() -> dict[str, Theme]:
    """Return every theme by name, in the report's order."""
    return {name: importlib.import_module(f"pathsum.report.themes.{name}").THEME for name in THEMES}


def detectors() -> dict[str, DetectorText]:
    """Return the detectors of all themes, by their name in the calibration's records."""
    return {name: detector for theme in themes().values() for name, detector in theme.detectors.items()}


def calibrated(results: Results) -> list[CalibrationRow]:
    """Return the calibration of each detector, in the order of the themes."""
    found = {row.detector: row for row in results.calibration}
    return [found[name] for name in detectors() if name in found]


def sources() -> dict[str, tuple[str, ...]]:
    """Return the records behind each figure and table that shows others than that of its own name."""
    return {name: records for theme in themes().values() for name, records in theme.sources.items()}


def drawn(figures: Figures, *names: str) -> tuple[Figure, ...]:
    """Return the figures of ``names`` that were drawn."""
    return tuple(figures[name] for name in names if name in figures)
