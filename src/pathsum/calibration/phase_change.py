"""The detector of the phase change: prefix matching against the loss on planted copies."""

from __future__ import annotations

from collections.abc import Iterator

from pathsum.calibration.detectors import Unit
from pathsum.calibration.world import PlantedModel
from pathsum.statistics.phase_change import onset

CHANGED_NATS = 1.0  # the smallest fall of the loss on planted copies that is a change


def phase_change(planted: PlantedModel) -> Iterator[Unit]:
    """Compare when the loss on planted copies has fallen halfway with when prefix matching has risen halfway. The
    change is found if no evaluation lies between. One at another time is found where none was planted."""
    curve = planted.curve
    if not curve.matching or len(curve.tokens_seen) < 2:
        return
    found, change = onset(curve.tokens_seen, curve.matching), None
    if "copied" in curve.losses:
        change = onset(curve.tokens_seen, [-loss for loss in curve.losses["copied"]], CHANGED_NATS)
    if change and found and change.low <= found.high and found.low <= change.high:
        yield True, True
    else:
        if change:
            yield True, False
        yield False, found is not None


DETECTORS = {"phase_change": phase_change}
