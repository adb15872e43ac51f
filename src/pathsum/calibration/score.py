"""Precision and recall of every detector on known structure, with intervals that count worlds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pathsum.calibration.detectors import detectors
from pathsum.calibration.units import Unit
from pathsum.calibration.world import PlantedModel
from pathsum.records.calibration import CalibrationRow

NORMAL_95 = 1.959964


@dataclass(frozen=True)
class Tried:
    """What the detectors made of one world."""

    learnt: bool
    units: dict[str, list[Unit]]  # by detector; none where the model has not learnt its text


def tried(planted: PlantedModel) -> Tried:
    """Run every detector; a model that has not learnt what was planted is no test of any."""
    return Tried(planted.learnt, {name: list(d(planted)) for name, d in detectors().items()} if planted.learnt else {})


def calibrate(worlds: Sequence[Tried]) -> list[CalibrationRow]:
    """A row for each detector, over all worlds."""
    learnt = [world.units for world in worlds if world.learnt]
    return [row(name, [units[name] for units in learnt], len(worlds) - len(learnt)) for name in detectors()]


def row(detector: str, worlds: Sequence[Sequence[Unit]], not_learnt: int) -> CalibrationRow:
    """Precision and recall over the units (planted, found) of ``worlds``, each with its interval."""
    some = [units for units in worlds if units]
    hits, found, planted = (
        [sum(test(*unit) for unit in units) for units in some]
        for test in (lambda p, f: p and f, lambda _, f: f, lambda p, _: p)
    )
    precision, recall = interval(hits, found), interval(hits, planted)
    return CalibrationRow(
        detector=detector,
        n=sum(map(len, some)),
        planted=sum(planted),
        found=sum(found),
        hits=sum(hits),
        precision=precision[0],
        precision_low=precision[1],
        precision_high=precision[2],
        recall=recall[0],
        recall_low=recall[1],
        recall_high=recall[2],
        worlds=len(some),
        planted_worlds=sum(n > 0 for n in planted),
        not_learnt=not_learnt,
    )


def interval(hits: Sequence[int], n: Sequence[int]) -> tuple[float, float, float] | tuple[None, None, None]:
    """A share of units that lie in worlds, ``hits`` of ``n`` in each, and its 95 % interval: Wilson's (1927), for as
    many units as if they were independent. None where there are no units.

    That many are n / d, with d ≥ 1 the ratio of the share's variance between worlds to that of independent units
    (Korn and Graubard 1998). Where all units agree no variance is seen, and each world counts once."""
    counted = [(h, m) for h, m in zip(hits, n, strict=True) if m]
    total, worlds = sum(m for _, m in counted), len(counted)
    if total == 0:
        return None, None, None
    share = sum(h for h, _ in counted) / total
    alone = share * (1 - share) / total
    effective = float(worlds)
    if alone > 0:
        between = sum((h - share * m) ** 2 for h, m in counted) / total**2
        effective = total / max(1.0, between / alone)
    return share, *wilson(share, effective)


def wilson(share: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share of ``n`` independent units, which stays within 0..1 and says something where all
    agree. ``n`` need not be whole, as scipy's would."""
    z2 = NORMAL_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
