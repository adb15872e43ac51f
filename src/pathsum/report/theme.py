"""Themes of the report. A theme is one section, with its figures, the records that they show, and its detectors.

Each file of ``themes/`` defines one theme as ``THEME``. ``pathsum.claims.themes`` defines their order.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pathsum.claims.themes import THEMES
from pathsum.records.calibration import CalibrationRow
from pathsum.records.results import Results
from pathsum.report.figures.base import Figure
from pathsum.report.page.document import Section

Figures = Mapping[str, Figure]


@dataclass(frozen=True)
class DetectorText:
    """The printed name of a calibrated detector, and its criterion: the ground truth and what counts as found."""

    name: str
    criterion: str


@dataclass(frozen=True)
class Theme:
    """One section of the report, with its figures, sources, detectors and tables."""

    title: str
    section: Callable[[Results, Figures], Section]
    figures: tuple[Callable[[Results], Figure | None], ...] = ()
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Records that a figure or table shows, by its name. The default is the record with the same name."""
    detectors: Mapping[str, DetectorText] = field(default_factory=dict)
    """Detectors of this theme, by their name in the record calibration."""
    relies_on: tuple[str, ...] = ()
    """Detectors that the section relies on. The section gets a note on each whose precision or recall is low."""
    few_windows: bool = False
    """Whether the section shows intervals from few windows. It then gets a note on their measured coverage."""
    tables: tuple[str, ...] = ()
    """Files under tables/ that the W&B dashboard shows with the section."""


@functools.cache
def themes() -> dict[str, Theme]:
    """Return every theme by name, in the order of the report."""
    return {name: importlib.import_module(f"pathsum.report.themes.{name}").THEME for name in THEMES}


def detectors() -> dict[str, DetectorText]:
    """Return the detectors of all themes, by their name in the record calibration."""
    return {name: detector for theme in themes().values() for name, detector in theme.detectors.items()}


def calibrated(results: Results) -> list[CalibrationRow]:
    """Return the calibration row of each calibrated detector, in the order of the themes."""
    found = {row.detector: row for row in results.calibration}
    return [found[name] for name in detectors() if name in found]


def sources() -> dict[str, tuple[str, ...]]:
    """Return the records that each figure or table shows, by its name."""
    return {name: records for theme in themes().values() for name, records in theme.sources.items()}
