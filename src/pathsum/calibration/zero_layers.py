"""The detector of bigrams: the direct path against the bigram table from which the text was generated."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from pathsum.calibration.detectors import Unit, compared
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.circuits.bigram import direct_path

SUCCESSORS = 5  # number of most likely next words that are compared, for each word


def bigrams(model: SyntheticModel) -> Iterator[Unit]:
    """Compare each word's SUCCESSORS most likely next words in the table with those of the direct path."""
    if not model.trained.weights.layers:
        table = torch.tensor(model.text.truth.bigram)
        path = direct_path(model.trained.weights)
        found = (path.left[1:] @ path.right[:, 1:]).mT.topk(SUCCESSORS).indices.tolist()
        for ours, theirs in zip(table.topk(SUCCESSORS).indices.tolist(), found, strict=True):
            yield from compared(set(ours), set(theirs))


DETECTORS = {"bigram": bigrams}
