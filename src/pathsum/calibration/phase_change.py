"""The detector of the phase change: whether the onset of prefix matching coincides with the fall of the loss on copied
text."""

from __future__ import annotations

from collections.abc import Iterator

from pathsum.calibration.detectors import Unit
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.statistics.phase_change import onset

CHANGED_NATS = 1.0  # smallest decrease of the loss on copied text that counts as a change


def phase_change(model: SyntheticModel) -> Iterator[Unit]:
    """Compare the onset of prefix matching with the half-way point of the fall of the loss on copied text, in tokens
    seen."""
    curve = model.curve
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
