"""Precision and recall of every detector on synthetic corpora, with intervals (docs/framework.md §10.5, §11.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pathsum.calibration.detectors import Unit, detectors
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.records.calibration import CalibrationRow

NORMAL_95 = 1.959964
Tried = dict[str, list[Unit]] | None  # units of one model by detector; None if the model has not learned its text


def tried(model: SyntheticModel) -> Tried:
    """Run every detector on a model. Return None if the model has not learned the rules of its text."""
    return {name: list(detector(model)) for name, detector in detectors().items()} if model.learned else None


def calibrate(models: Sequence[Tried]) -> list[CalibrationRow]:
    """Return precision and recall of each detector over all models, as one row per detector."""
    learned = [units for units in models if units is not None]
    return [row(name, [units[name] for units in learned], len(models) - len(learned)) for name in detectors()]


def row(detector: str, corpora: Sequence[Sequence[Unit]], not_learned: int) -> CalibrationRow:
    """Return precision and recall of a detector, each with its interval, from its units in each synthetic corpus.

    A unit is a pair (present, found). ``not_learned`` is the number of corpora that were left out because their model
    did not learn the rules.
    """
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
    """Return the share Σ hits / Σ n over synthetic corpora and the ends of its 95 % interval; all are None without
    units.

    This is the Wilson (1927) interval for an effective number of units, n / d. d ≥ 1 is the design effect: the ratio of
    the variance of the share between corpora to the variance if units were independent (Korn and Graubard 1998;
    docs/framework.md §10.5). Where all units agree there is no variance, and each corpus counts as one unit.
    """
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
    """Return the 95 % Wilson interval of a share of ``n`` independent units (docs/framework.md §10.5).

    It stays within 0..1, and has a positive width even if all units agree. Unlike in scipy, ``n`` need not be a whole
    number.
    """
    z2 = NORMAL_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
