"""A small trained model with its extracted records and the data that it is evaluated on."""

import functools
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from pathsum.config import CellConfig, ExtractConfig
from pathsum.extraction.cell import extract
from pathsum.extraction.inputs import EvalData, TrainedModel, trace_trained
from pathsum.model.checkpoint import load_checkpoint
from pathsum.model.transformer import Transformer
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
FOLDERS: list[tempfile.TemporaryDirectory[str]] = []  # of the checkpoints, until the end of the process


@functools.cache
def evidence() -> EvalData:
    held_out = windows(1)
    everything = held_out.batch(held_out.spread(len(held_out)))
    pairs = torch.zeros(D_VOCAB, D_VOCAB, dtype=torch.int64)
    pairs.index_put_((everything[:, :-1].flatten(), everything[:, 1:].flatten()), torch.tensor(1), accumulate=True)
    return EvalData(
        held_out=everything,
        documents=torch.arange(len(everything)) // 2,
        windows=everything[: HOW.windows],
        tuning=everything[: HOW.windows],
        unigram=torch.bincount(everything[:, 1:].flatten(), minlength=D_VOCAB).float(),
        bigram_counts=pairs,
        words=[f"w{i}" for i in range(D_VOCAB)],
        tokenizer_hash="words",
        bigram_losses=torch.full(everything[:, 1:].shape, 3.0, dtype=torch.float64),
    )


def plain_text(windows: Tensor, words: list[str], counts: float = 1.0) -> EvalData:
    """Return windows that are documents of their own, in a vocabulary of equally frequent tokens."""
    n, documents = len(words), torch.arange(len(windows))
    return EvalData(windows, documents, windows, windows, torch.full((n,), counts), torch.ones(n, n), words, "words")


def cell_of_shape(tokens: int = TRAIN.tokens, **model: object) -> CellConfig:
    changed = {"model": {**MODEL.model_dump(), **model}, "train": {**TRAIN.model_dump(), "tokens": tokens}}
    return CellConfig(**{**CELL.model_dump(), **changed})


def untrained(scale: float = 0.5, **model: object) -> TrainedModel:
    """Return a model with random weights, including the outputs of later layers."""
    cell, g = cell_of_shape(**model), torch.Generator().manual_seed(3)
    made = Transformer(cell.model, D_VOCAB, g).requires_grad_(False)
    for p in made.parameters():
        p.add_(scale * torch.randn(p.shape, generator=g))
    return trace_trained(made, cell, [], evidence(), HOW)


@functools.cache
def learnt(tokens: int = TRAIN.tokens, **model: object) -> TrainedModel:
    """Return a small trained model with log and checkpoints, made once per process; do not change it."""
    cell = cell_of_shape(tokens, **model)
    FOLDERS.append(tempfile.TemporaryDirectory())
    folder = Path(FOLDERS[-1].name)
    log, saved = trained(folder, cell), sorted((folder / "checkpoints").iterdir())
    checkpoints = [functools.partial(load_checkpoint, path, "words") for path in saved]
    return trace_trained(checkpoints[-1](), cell, log, evidence(), HOW, checkpoints)


@functools.cache
def taken_apart(tokens: int = TRAIN.tokens, **model: object) -> Cell:
    """Return the records of a small trained model, made once per process; do not change them."""
    found = learnt(tokens, **model)
    return extract("cell", found.cell, found.log, found.checkpoints, evidence(), HOW)
