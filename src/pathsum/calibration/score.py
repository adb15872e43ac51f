"""Precision and recall of every detector on planted truth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pathsum.calibration.detectors import DETECTORS
from pathsum.calibration.world import Grown
from pathsum.records import CalibrationRow

NORMAL_95 = 1.959964


def calibrate(models: Sequence[Grown]) -> list[CalibrationRow]:
    """What each detector makes of ``models``; one that has not learnt what was planted is no test of a detector."""
    learnt = [grown for grown in models if grown.learnt]
    return [
        row(name, list(detector(learnt)), len(learnt), len(models) - len(learnt))
        for name, detector in DETECTORS.items()
    ]


def row(detector: str, units: Sequence[tuple[bool, bool]], models: int, not_learnt: int) -> CalibrationRow:
    """Precision and recall over ``units`` (planted, found), each with its interval."""
    planted, found = (sum(unit[i] for unit in units) for i in (0, 1))
    hits = sum(both == (True, True) for both in units)
    precision, recall = wilson(hits, found), wilson(hits, planted)
    return CalibrationRow(
        detector=detector,
        n=len(units),
        planted=planted,
        found=found,
        hits=hits,
        precision=precision[0],
        precision_low=precision[1],
        precision_high=precision[2],
        recall=recall[0],
        recall_low=recall[1],
        recall_high=recall[2],
        models=models,
        not_learnt=not_learnt,
    )


def wilson(hits: int, n: int) -> tuple[float, float, float] | tuple[None, None, None]:
    """A share and its 95 % interval (Wilson 1927), which stays within 0..1 and says something where all hit. None
    where there was nothing to hit."""
    if n == 0:
        return None, None, None
    share, z2 = hits / n, NORMAL_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return share, max(0.0, centre - half), min(1.0, centre + half)
