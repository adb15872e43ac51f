"""Detectors of heads by behavior: previous-token heads, induction heads and copying heads."""

from __future__ import annotations

from collections.abc import Iterator

from pathsum.calibration.detectors import Unit, copies, some_head
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.extraction import framework


def previous_token(model: SyntheticModel) -> Iterator[Unit]:
    """Yield a unit per head: whether it must have the label "previous token", and whether it has it."""
    config = model.text.config
    if config.model.n_layers == 1 or not config.train.tokens:
        for row in model.labels:
            if row.behaviour == "previous token":
                yield config.corpus.two_back_spread > 0 and config.train.tokens > 0, row.labelled


def induction(model: SyntheticModel) -> Iterator[Unit]:
    """Yield, layer by layer, whether heads must have the label "induction", and whether they have it."""
    rows = [row for row in model.labels if row.behaviour == "induction: uniform"]
    for layer in range(model.text.config.model.n_layers):
        yield from some_head(copies(model, layer), [row.labelled for row in rows if row.layer == layer])


def copying(model: SyntheticModel) -> Iterator[Unit]:
    """Yield, layer by layer, whether heads must copy, and whether they copy by the eigenvalues of their OV
    (output-value) circuits."""
    corpus, rows = model.text.config.corpus, framework.head_rows(model.trained, model.data)
    plain = not (corpus.repeat_share or corpus.questions or corpus.n_answers)
    for layer in range(model.text.config.model.n_layers):
        if plain or copies(model, layer):
            yield from some_head(copies(model, layer), [row.copies for row in rows if row.layer == layer])


DETECTORS = {"previous_token": previous_token, "induction": induction, "copying": copying}
