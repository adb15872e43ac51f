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
class EvalData:
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
class TracedModel:
    """A model, whoever trained it, and its traces on held-out text and on repeated random tokens (float32)."""

    model: AttentionOnly
    weights: Weights  # each token's embedding at the scale at which the layers read it
    natural: Trace  # on EvalData.windows
    repeated_tokens: Int[Tensor, "copies pos"]  # BOS and a random block twice
    block: int
    repeated: Trace  # on those


@dataclass(frozen=True)
class TrainedModel(TracedModel):
    """A model of this project, with its configuration and its log."""

    model: Transformer
    cell: CellConfig
    log: list[Evaluation]
    checkpoints: tuple[Path, ...] = ()  # in order of training, one for each evaluation of the log


def trace_trained(
    model: Transformer,
    cell: CellConfig,
    log: list[Evaluation],
    data: EvalData,
    config: ExtractConfig,
    checkpoints: Sequence[Path] = (),
) -> TrainedModel:
    """Trace a model of this project, and keep its configuration, log and checkpoints. Costs as ``trace_model``."""
    traced = trace_model(model, cell.model.n_ctx, data, config)
    return TrainedModel(**vars(traced), cell=cell, log=log, checkpoints=tuple(checkpoints))


def trace_model(model: AttentionOnly, n_ctx: int, data: EvalData, config: ExtractConfig) -> TracedModel:
    """Trace ``model`` on held-out windows and on repeated random tokens, ``n_ctx`` tokens each. Costs two traces:
    windows × heads × pos² numbers each."""
    generator = torch.Generator().manual_seed(_SEED)
    present = (data.unigram > 0).float()
    repeated, block = repeated_random(config.repeated_windows, n_ctx, len(data.words), generator, present)
    with torch.no_grad():
        natural, again = model.trace(data.windows[:, :-1]), model.trace(repeated)
    return TracedModel(model, effective(model), natural, repeated, block, again)


def effective(model: AttentionOnly) -> Weights:
    """Return the weights, each token's embedding at the scale at which the layers read it where there is a norm: a bare
    token's own scale. Composition does not depend on it; the certificate takes the weights as they are."""
    weights = model.weights()
    _, scale = model.normalise(weights.W_E.mT)
    return Weights(weights.W_E * scale, weights.W_U, weights.layers)
