"""The phase change: prefix matching against the loss on planted copies."""

from __future__ import annotations

from collections.abc import Iterator

from pathsum.calibration.units import Detector, Unit
from pathsum.calibration.world import PlantedModel
from pathsum.statistics.phase_change import Onset, onset

CHANGED_NATS = 1.0  # least fall of the loss on planted copies that is a change


def phase_change(planted: PlantedModel) -> Iterator[Unit]:
    """When the loss on planted copies is half-way down, and when prefix matching is half-way up: found if no
    evaluation lies between. A change at another time is found where none was planted."""
    curve = planted.curve
    if not curve.matching or len(curve.tokens_seen) < 2:
        return
    found, change = onset(curve.tokens_seen, curve.matching), None
    if "copied" in curve.losses:
        change = onset(curve.tokens_seen, [-loss for loss in curve.losses["copied"]], CHANGED_NATS)
    if change and found and _at_once(change, found):
        yield True, True
    else:
        if change:
            yield True, False
        yield False, found is not None


def _at_once(a: Onset, b: Onset) -> bool:
    return a.low <= b.high and b.low <= a.high


DETECTORS: dict[str, Detector] = {
    "phase_change": phase_change,
}
