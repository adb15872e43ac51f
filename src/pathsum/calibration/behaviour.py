"""Heads by what they do: previous-token heads, induction heads, copying heads."""

from __future__ import annotations

from collections.abc import Iterator

from pathsum.calibration.units import Detector, Unit, by_layer
from pathsum.calibration.units import copies as must_copy
from pathsum.calibration.world import PlantedModel
from pathsum.extraction import framework
from pathsum.records.heads import LabelRow


def previous_token(planted: PlantedModel) -> Iterator[Unit]:
    """The one head of one layer, where the word before the last tells of the next; and untrained heads. With more heads
    it is not known which of them sees to it."""
    config = planted.world.config
    if config.model.n_layers == 1 or not config.train.tokens:
        for row in _labels(planted, "previous token"):
            yield config.corpus.two_back_spread > 0 and config.train.tokens > 0, row.labelled


def induction(planted: PlantedModel) -> Iterator[Unit]:
    """Some head of the last layer where text repeats itself and keys can know what stood before them; no other head."""
    for layer, labelled in by_layer(planted, [(r.layer, r.labelled) for r in _labels(planted, "induction: uniform")]):
        if must_copy(planted, layer):
            yield True, any(labelled)
        else:
            yield from ((False, found) for found in labelled)


def copying(planted: PlantedModel) -> Iterator[Unit]:
    """Some head of a layer that must write what it reads, by the eigenvalues of its OV circuit: induction heads are
    such. Heads of text without copies or answers have no reason to."""
    heads = framework.head_rows(planted.trained, planted.data)
    for layer, copies in by_layer(planted, [(head.layer, head.copies) for head in heads]):
        if must_copy(planted, layer):
            yield True, any(copies)
        elif _plain(planted):
            yield from ((False, found) for found in copies)


def _labels(planted: PlantedModel, test: str) -> list[LabelRow]:
    return [row for row in planted.labels if row.behaviour == test]


def _plain(planted: PlantedModel) -> bool:
    corpus = planted.world.config.corpus
    return not (corpus.repeat_share or corpus.questions or corpus.n_answers)


DETECTORS: dict[str, Detector] = {
    "previous_token": previous_token,
    "induction": induction,
    "copying": copying,
}
