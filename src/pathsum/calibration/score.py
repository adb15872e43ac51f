"""Compute precision and recall of every detector on known structure, with intervals that count synthetic corpora."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pathsum.calibration.detectors import Unit, detectors
from pathsum.calibration.world import PlantedModel
from pathsum.records.calibration import CalibrationRow

NORMAL_95 = 1.959964
Tried = dict[str, list[Unit]] | None  # units of one model by detector; None where it has not learned its text


def tried(planted: PlantedModel) -> Tried:
    """Run every detector. A model that has not learned what was planted tests none."""
    return {name: list(detector(planted)) for name, detector in detectors().items()} if planted.learnt else None


def calibrate(models: Sequence[Tried]) -> list[CalibrationRow]:
    """Return a row for each detector, over all models."""
    learned = [units for units in models if units is not None]
    return [row(name, [units[name] for units in learned], len(models) - len(learned)) for name in detectors()]


def row(detector: str, worlds: Sequence[Sequence[Unit]], not_learnt: int) -> CalibrationRow:
    """Compute precision and recall over the units (planted, found) of ``worlds``, each with its interval."""
    some = [units for units in worlds if units]
    hits = [sum(planted and found for planted, found in units) for units in some]
    found = [sum(found for _, found in units) for units in some]
    planted = [sum(planted for planted, _ in units) for units in some]
    numbers: Any = (
        sum(map(len, some)), sum(planted), sum(found), sum(hits), *interval(hits, found), *interval(hits, planted),
        len(some), sum(n > 0 for n in planted), not_learnt,
    )  # fmt: skip
    return CalibrationRow(detector, *numbers)


def interval(hits: Sequence[int], n: Sequence[int]) -> tuple[float, float, float] | tuple[None, None, None]:
    """Compute a share of units, ``hits`` of ``n`` in each synthetic corpus, and its 95 % interval: Wilson's (1927), for
    the effective number of independent units. None where there are no units.

    That number is n / d, with d ≥ 1 the ratio of the share's variance between corpora to that of independent units
    (Korn and Graubard 1998). Where all units agree no variance is seen, and each corpus counts once."""
    counted = [(h, m) for h, m in zip(hits, n, strict=True) if m]
    total, effective = sum(m for _, m in counted), float(len(counted))
    if total == 0:
        return None, None, None
    share = sum(h for h, _ in counted) / total
    alone = share * (1 - share) / total
    if alone > 0:
        between = sum((h - share * m) ** 2 for h, m in counted) / total**2
        effective = total / max(1.0, between / alone)
    return share, *wilson(share, effective)


def wilson(share: float, n: float) -> tuple[float, float]:
    """Compute the 95 % interval of a share of ``n`` independent units. It stays within 0..1 and has a width where all
    agree. ``n`` need not be whole, unlike in scipy."""
    z2 = NORMAL_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
