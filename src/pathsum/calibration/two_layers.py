"""Composition: each edge against what the model loses without it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pathsum.calibration.units import Detector, Unit
from pathsum.calibration.world import PlantedModel

UNUSED_NATS = 0.1  # most that depends on an edge that is not relied on
USED_NATS = 0.5  # least that depends on an edge or a head that is


def composition(kinds: str, least: float = USED_NATS) -> Detector:
    """Every edge of these kinds into a head on which the loss depends by ``least`` nats: there if the model relies on
    the edge, left out where that is in doubt. The loss does not say what a head reads that it does not need."""

    def detector(planted: PlantedModel) -> Iterator[Unit]:
        for edge, nats in planted.edges.items():
            if edge[0] in kinds and planted.late[edge[2]] >= least and not UNUSED_NATS < nats < USED_NATS:
                yield nats >= USED_NATS, planted.composition[edge].composes

    return detector


DETECTORS: dict[str, Detector] = {
    "composition_q": composition("Q"),
    "composition_k": composition("K"),
    "composition_v": composition("V"),
    "composition": composition("QKV"),
    "composition_all_heads": composition("QKV", least=-math.inf),
}
