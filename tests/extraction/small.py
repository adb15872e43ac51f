"""A small trained model with its extracted records and the data that it is evaluated on."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import torch

from pathsum.config import CellConfig, ExtractConfig
from pathsum.extraction.cell import extract
from pathsum.extraction.inputs import EvalData, TrainedModel, trace_trained
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records.results import Cell
from tests.training.small import CELL, D_VOCAB, MODEL, TRAIN, trained, windows

HOW = ExtractConfig(
    held_out_windows=101,
    windows_per_document=2,
    windows=11,
    repeated_windows=5,
    exactness_windows=3,
    top_k=7,
    rotations=99,
)


def evidence() -> EvalData:
    held_out = windows(1)
    everything = held_out.batch(held_out.spread(len(held_out)))
    unigram = torch.bincount(everything[:, 1:].flatten(), minlength=D_VOCAB)
    pairs = torch.zeros(D_VOCAB, D_VOCAB, dtype=torch.int64)
    pairs.index_put_((everything[:, :-1].flatten(), everything[:, 1:].flatten()), torch.tensor(1), accumulate=True)
    words = [f"w{i}" for i in range(D_VOCAB)]
    return EvalData(
        held_out=everything,
        documents=torch.arange(len(everything)) // 2,
        windows=everything[: HOW.windows],
        tuning=everything[: HOW.windows],
        unigram=unigram.float(),
        bigram_counts=pairs,
        words=words,
        tokenizer_hash="words",
        bigram_losses=torch.full(everything[:, 1:].shape, 3.0, dtype=torch.float64),
    )


@functools.cache
def taken_apart(tokens: int = TRAIN.tokens, **model: object) -> Cell:
    """Return the records of a small trained model. They are made once per process; do not change them."""
    changed = {"model": {**MODEL.model_dump(), **model}, "train": {**TRAIN.model_dump(), "tokens": tokens}}
    cell = CellConfig(**{**CELL.model_dump(), **changed})
    with tempfile.TemporaryDirectory() as folder:
        log = trained(Path(folder), cell)
        return extract("cell", cell, log, sorted((Path(folder) / "checkpoints").iterdir()), evidence(), HOW)


def subject_of(folder: Path, **model: object) -> TrainedModel:
    """Return a trained model with its traces."""
    cell = CellConfig(**{**CELL.model_dump(), "model": {**MODEL.model_dump(), **model}})
    trained(folder, cell)
    return trace_trained(load_checkpoint(max((folder / "checkpoints").iterdir()), "words"), cell, [], evidence(), HOW)
