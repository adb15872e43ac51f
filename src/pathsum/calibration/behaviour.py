"""Detectors of heads by what they do: previous-token heads, induction heads, copying heads."""

from __future__ import annotations

from collections.abc import Iterator

from pathsum.calibration.detectors import Unit, copies, some_head
from pathsum.calibration.world import PlantedModel
from pathsum.extraction import framework


def previous_token(planted: PlantedModel) -> Iterator[Unit]:
    """Expect the one head of one layer, where the word two back predicts the next; and no head of untrained models.
    With more heads it is not known which of them attends to the previous token."""
    config = planted.world.config
    if config.model.n_layers == 1 or not config.train.tokens:
        for row in planted.labels:
            if row.behaviour == "previous token":
                yield config.corpus.two_back_spread > 0 and config.train.tokens > 0, row.labelled


def induction(planted: PlantedModel) -> Iterator[Unit]:
    """Expect some head of the last layer, where text repeats itself and keys can hold the previous token; and no other
    head."""
    rows = [row for row in planted.labels if row.behaviour == "induction: uniform"]
    for layer in range(planted.world.config.model.n_layers):
        yield from some_head(copies(planted, layer), [row.labelled for row in rows if row.layer == layer])


def copying(planted: PlantedModel) -> Iterator[Unit]:
    """Expect some head of a layer that must write what it reads, by the eigenvalues of its OV circuit, as induction
    heads must, and none in a layer that need not, in text without copies, questions or answers. Other layers are left
    out."""
    corpus, rows = planted.world.config.corpus, framework.head_rows(planted.trained, planted.data)
    plain = not (corpus.repeat_share or corpus.questions or corpus.n_answers)
    for layer in range(planted.world.config.model.n_layers):
        if plain or copies(planted, layer):
            yield from some_head(copies(planted, layer), [row.copies for row in rows if row.layer == layer])


DETECTORS = {"previous_token": previous_token, "induction": induction, "copying": copying}
