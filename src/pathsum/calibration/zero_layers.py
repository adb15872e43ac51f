"""Bigrams: those of the direct path against the table that the text was drawn from."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from pathsum.calibration.units import Detector, Unit, compared
from pathsum.calibration.world import PlantedModel
from pathsum.circuits.bigram import direct_path

SUCCESSORS = 5  # of each word, the likeliest


def bigrams(planted: PlantedModel) -> Iterator[Unit]:
    """Each word's likeliest successors: by the table, and by the direct path of models without layers."""
    if not planted.trained.weights.layers:
        table = torch.tensor(planted.world.truth.bigram)
        path = direct_path(planted.trained.weights)
        found = (path.left[1:] @ path.right[:, 1:]).mT.topk(SUCCESSORS).indices.tolist()
        for ours, theirs in zip(table.topk(SUCCESSORS).indices.tolist(), found, strict=True):
            yield from compared(set(ours), set(theirs))


DETECTORS: dict[str, Detector] = {
    "bigram": bigrams,
}
