"""Detectors of composition. The ground truth of an edge is its effect on the loss (docs/framework.md §11.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pathsum.calibration.detectors import Detector, Unit
from pathsum.calibration.synthetic import SyntheticModel

UNUSED_NATS = 0.1  # largest effect on the loss of an edge that is absent
USED_NATS = 0.5  # smallest effect on the loss of an edge that is present, or of a head whose edges are tested


def composition(kinds: str, least: float = USED_NATS) -> Detector:
    """Return a detector of edges of the given ``kinds`` (letters of "QKV") into heads whose own effect on the loss is
    ``least`` nats or more."""

    def detector(model: SyntheticModel) -> Iterator[Unit]:
        for edge, nats in model.edges.items():
            if edge[0] in kinds and model.late[edge[2]] >= least and not UNUSED_NATS < nats < USED_NATS:
                yield nats >= USED_NATS, model.composition[edge].composes

    return detector


DETECTORS = {
    "composition_q": composition("Q"),
    "composition_k": composition("K"),
    "composition_v": composition("V"),
    "composition": composition("QKV"),
    "composition_all_heads": composition("QKV", least=-math.inf),
}
