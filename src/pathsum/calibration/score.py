"""Precision and recall of every detector on synthetic corpora, with intervals (docs/framework.md §10.5, §11.4)."""

import math
from collections.abc import Sequence
from typing import Any

from pathsum.calibration.detectors import DETECTORS, Unit
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.records.calibration import CalibrationRow

NORMAL_95 = 1.959964
Tried = dict[str, list[Unit]] | None  # units of one model by detector; None if the model has not learned its text


def tried(model: SyntheticModel) -> Tried:
    """Run every detector on a model. Return its units by detector, or None if the model has not learned its text."""
    return {name: list(detector(model)) for name, detector in DETECTORS.items()} if model.learned else None


def calibrate(models: Sequence[Tried]) -> list[CalibrationRow]:
    """Return one row per detector: precision and recall over all models that have learned their text."""
    learned = [units for units in models if units is not None]
    return [row(name, [units[name] for units in learned], len(models) - len(learned)) for name in DETECTORS]


def row(detector: str, corpora: Sequence[Sequence[Unit]], not_learned: int) -> CalibrationRow:
    """Return precision and recall of ``detector`` with their intervals."""
    some = [units for units in corpora if units]
    hits = [sum(present and found for present, found in units) for units in some]
    found = [sum(found for _, found in units) for units in some]
    present = [sum(present for present, _ in units) for units in some]
    numbers: Any = (
        sum(map(len, some)), sum(present), sum(found), sum(hits), *interval(hits, found), *interval(hits, present),
        len(some), sum(n > 0 for n in present), not_learned,
    )  # fmt: skip
    return CalibrationRow(detector, *numbers)


def interval(hits: Sequence[int], n: Sequence[int]) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return Σ hits / Σ n over synthetic corpora and the ends of its 95 % interval; three times None if Σ n is 0."""
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
    """Return the 95 % Wilson interval of a ``share`` (0 to 1) of ``n`` > 0 independent units."""
    z2 = NORMAL_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
