"""Detectors of composition. The ground truth of an edge is how much the loss depends on it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pathsum.calibration.detectors import Detector, Unit
from pathsum.calibration.world import PlantedModel

UNUSED_NATS = 0.1  # the largest effect on the loss of an edge that is not relied on
USED_NATS = 0.5  # the smallest effect of an edge or a head that is


def composition(kinds: str, least: float = USED_NATS) -> Detector:
    """Return the detector of edges of these kinds into heads whose effect on the loss is ``least`` nats or more. An
    edge is planted if the model relies on it, and left out where that is in doubt. The loss does not show what a head
    reads and does not need."""

    def detector(planted: PlantedModel) -> Iterator[Unit]:
        for edge, nats in planted.edges.items():
            if edge[0] in kinds and planted.late[edge[2]] >= least and not UNUSED_NATS < nats < USED_NATS:
                yield nats >= USED_NATS, planted.composition[edge].composes

    return detector


DETECTORS = {
    "composition_q": composition("Q"),
    "composition_k": composition("K"),
    "composition_v": composition("V"),
    "composition": composition("QKV"),
    "composition_all_heads": composition("QKV", least=-math.inf),
}
