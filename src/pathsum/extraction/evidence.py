"""What a model is shown, what the corpus says, and what the model makes of it: what all tables are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.bigram import CountRows
from pathsum.config import CellConfig, ExtractConfig
from pathsum.core.weights import Weights
from pathsum.data.repeated import repeated_random
from pathsum.model.protocol import AttentionOnly
from pathsum.model.transformer import Trace, Transformer
from pathsum.probes.evaluation import Evaluation

_SEED = 2021


@dataclass(frozen=True)
class Evidence:
    """What a model is shown, and what the corpus says."""

    held_out: Int[Tensor, "all window"]  # windows of verdict documents, one of each document first: losses
    documents: Int[Tensor, "all"]  # the document of each, by number: what intervals resample
    windows: Int[Tensor, "batch window"]  # the first of them: patterns and the certificate
    tuning: Int[Tensor, "n window"]  # of other documents, which training looked at too: for what is chosen
    unigram: Float[Tensor, "vocab"]
    bigram_counts: CountRows
    words: Sequence[str]  # printable tokens by id
    tokenizer_hash: str
    bigram_losses: Float[Tensor, "all"] | None = None  # of the smoothed bigram model on ``held_out``, nats per token

    @property
    def window_documents(self) -> Int[Tensor, "batch"]:
        """The document of each of ``windows``."""
        return self.documents[: len(self.windows)]


@dataclass(frozen=True)
class Examined:
    """A model, whoever trained it, and its traces on held-out text and on repeated random tokens (float32)."""

    model: AttentionOnly
    weights: Weights  # each token's embedding at the scale at which the layers read it
    natural: Trace  # on Evidence.windows
    repeated_tokens: Int[Tensor, "copies pos"]  # BOS and a random block twice
    block: int
    repeated: Trace  # on those


@dataclass(frozen=True)
class Subject(Examined):
    """A model of this project, with its configuration and its log."""

    model: Transformer
    cell: CellConfig
    log: list[Evaluation]
    checkpoints: tuple[Path, ...] = ()  # in order of training, one for each evaluation of the log


def examine(
    model: Transformer,
    cell: CellConfig,
    log: list[Evaluation],
    seen: Evidence,
    how: ExtractConfig,
    checkpoints: Sequence[Path] = (),
) -> Subject:
    """Show a ``model`` of this project the evidence. Costs as ``show``."""
    e = show(model, cell.model.n_ctx, seen, how)
    return Subject(model, e.weights, e.natural, e.repeated_tokens, e.block, e.repeated, cell, log, tuple(checkpoints))


def show(model: AttentionOnly, n_ctx: int, seen: Evidence, how: ExtractConfig) -> Examined:
    """Show ``model`` the evidence, windows of ``n_ctx`` tokens. Costs two traces: windows × heads × pos² numbers
    each."""
    generator = torch.Generator().manual_seed(_SEED)
    present = (seen.unigram > 0).float()
    repeated, block = repeated_random(how.repeated_windows, n_ctx, len(seen.words), generator, present)
    with torch.no_grad():
        natural, again = model.trace(seen.windows[:, :-1]), model.trace(repeated)
    return Examined(model, effective(model), natural, repeated, block, again)


def effective(model: AttentionOnly) -> Weights:
    """The model's weights, with each token's embedding at the scale at which the layers read it where there is a norm:
    a bare token's own scale. Composition does not depend on it; the certificate takes the weights as they are."""
    weights = model.weights()
    _, scale = model.normalise(weights.W_E.mT)
    return Weights(weights.W_E * scale, weights.W_U, weights.layers)
