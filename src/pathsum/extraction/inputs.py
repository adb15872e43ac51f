"""The inputs of all tables: held-out windows, statistics of the corpus, and traces of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from pathsum.behavior.loss_drops import loss_drops
from pathsum.circuits import eigenvalues
from pathsum.circuits.bigram import CountRows
from pathsum.config import CellConfig, ExtractConfig
from pathsum.core.weights import Weights
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.records.roles import Place
from pathsum.records.tokens import JOINER
from pathsum.statistics.phase_change import Onset, onset
from pathsum.text.repeated import repeated_random
from pathsum.text.statistics import BigramRows, CorpusStatistics
from pathsum.text.tokenizer import Codec
from pathsum.text.tokens import read_tokens
from pathsum.text.windows import HeldOut

SETTLED = 0.05  # share of training
SOURCES = 2048
_SEED = 2021

Load = Callable[[], Transformer]  # reads a model from a checkpoint, in float32


@dataclass(frozen=True)
class EvalData:
    """Held-out windows, and statistics of the corpus."""

    held_out: Int[Tensor, "all window"]  # of verdict documents, for losses; one window of each document comes first
    documents: Int[Tensor, "all"]  # document number of each window; intervals resample documents
    windows: Int[Tensor, "batch window"]  # first windows of ``held_out``, for patterns and the exactness check
    tuning: Int[Tensor, "n window"]  # windows of tuning documents, for choices
    unigram: Float[Tensor, "vocab"]  # count of each token in the training text
    bigram_counts: CountRows  # of the training text, indexed [token, next]
    words: Sequence[str]  # printable tokens by id
    tokenizer_hash: str
    bigram_losses: Float[Tensor, "all pos"] | None = None  # of the smoothed bigram model on ``held_out``; nats
    tuning_bigram_loss: float | None = None  # of the same on ``tuning``; nats per token

    @staticmethod
    def read(tokens: Path, counts: CorpusStatistics, codec: Codec, n_ctx: int, config: ExtractConfig) -> EvalData:
        """Read the token files in the folder ``tokens``. ValueError for tokens of another tokenizer."""
        verdict, tuning = (
            HeldOut.of(read_tokens(tokens / f"{part}.bin").tokens, n_ctx, config.windows_per_document, most)
            for part, most in (("verdict", config.held_out_windows), ("tuning", config.windows))
        )
        return EvalData(
            held_out=verdict.batch(),
            documents=verdict.documents,
            windows=verdict.batch(config.windows),
            tuning=tuning.batch(),
            bigram_losses=counts.losses(verdict.batch()),
            tuning_bigram_loss=counts.losses(tuning.batch()).mean().item(),
            unigram=torch.from_numpy(counts.unigram_counts).float(),
            bigram_counts=BigramRows(counts.bigram_counts),
            words=codec.words,
            tokenizer_hash=codec.hash,
        )

    @property
    def window_documents(self) -> Int[Tensor, "batch"]:
        return self.documents[: len(self.windows)]

    @cached_property
    def bigram_drops(self) -> Float[Tensor, "all"]:
        """Return the in-context loss drop of the bigram model in each window of ``held_out``, in nats per token."""
        assert self.bigram_losses is not None
        return loss_drops(self.bigram_losses)

    @property
    def present(self) -> Float[Tensor, "vocab"]:
        """Return 1 for each token of the training text and 0 for others, as weights for sampling tokens uniformly."""
        return (self.unigram > 0).float()

    @cached_property
    def sources(self) -> Int[Tensor, "n"]:
        """Return the tokens of the training text, at most ``SOURCES`` of them drawn at random, by which copying is
        judged."""
        present = self.unigram.nonzero().squeeze(-1)
        drawn = torch.randperm(len(present), generator=torch.Generator().manual_seed(_SEED))[:SOURCES]
        return present[drawn.sort().values]

    def repeats(
        self, n: int, n_ctx: int, generator: torch.Generator, weights: Float[Tensor, "vocab"] | None = None
    ) -> Int[Tensor, "batch pos"]:
        """Sample ``n`` windows of repeated random tokens, by default uniformly among those of the training text."""
        weights = self.present if weights is None else weights
        return repeated_random(n, n_ctx, len(self.words), generator, weights)[0]


@dataclass(frozen=True)
class TracedModel:
    """A model of any origin, and its traces on held-out text and on repeated random tokens (float32)."""

    model: Transformer
    weights: Weights  # each embedding multiplied by the scale that the norm gives to it alone (``effective``)
    exact: Weights  # the same in float64, from before a rounding to float32; for tables of heads' weights alone
    natural: Trace  # on EvalData.windows
    repeated_tokens: Int[Tensor, "copies pos"]  # beginning-of-sequence token (BOS), then a random block twice
    block: int  # number of tokens of the random block
    repeated: Trace  # on ``repeated_tokens``

    @property
    def has_constants(self) -> bool:
        """Return whether paths begin at positions or biases as well."""
        return self.model.constants(self.model.n_ctx) is not None

    @property
    def places(self) -> list[Place]:
        return [(layer, h) for layer, heads in enumerate(self.weights.layers) for h in range(len(heads))]

    @cached_property
    def copying_eigenvalues(self) -> dict[Place, Complex[Tensor, "rank"]]:
        W_OVs = [head.W_OV for heads in self.exact.layers for head in heads]
        return dict(zip(self.places, eigenvalues.copying_eigenvalues(self.exact, W_OVs), strict=True))


@dataclass(frozen=True)
class TrainedModel(TracedModel):
    """A model with its configuration, its evaluations and its checkpoints."""

    model: Transformer
    cell: CellConfig
    log: list[Evaluation]
    checkpoints: tuple[Load, ...] = ()  # in order of training, one for each evaluation of the log
    bigram_loss: float | None = None  # of the smoothed bigram model on tuning documents; nats per token

    @property
    def settled(self) -> list[int]:
        enough = SETTLED * self.log[-1].tokens_seen if self.log else 0.0
        if self.bigram_loss is not None:
            better = (at.tokens_seen for at in self.log if at.val_loss_nats < self.bigram_loss)
            enough = min(enough, next(better, enough))
        return [i for i, at in enumerate(self.log) if at.tokens_seen >= enough]

    @property
    def onset(self) -> Onset | None:
        """Return the onset of the best prefix matching (docs/framework.md §6.3). None also with a single evaluation."""
        matching = [max((s for layer in at.prefix_matching for s in layer), default=0.0) for at in self.log]
        return onset([at.tokens_seen for at in self.log], matching) if len(self.log) > 1 else None


def trace_trained(
    model: Transformer,
    cell: CellConfig,
    log: list[Evaluation],
    data: EvalData,
    config: ExtractConfig,
    checkpoints: Sequence[Load] = (),
    precise: Transformer | None = None,
) -> TrainedModel:
    """Trace a model, and add its configuration, log and checkpoints."""
    traced = trace_model(model, cell.model.n_ctx, data, config, precise)
    return TrainedModel(
        **vars(traced), cell=cell, log=log, checkpoints=tuple(checkpoints), bigram_loss=data.tuning_bigram_loss
    )


def trace_model(
    model: Transformer, n_ctx: int, data: EvalData, config: ExtractConfig, precise: Transformer | None = None
) -> TracedModel:
    """Trace ``model`` on held-out windows, and on windows of at most ``n_ctx`` repeated random tokens. ``precise`` is
    the model before it was rounded."""
    generator = torch.Generator().manual_seed(_SEED)
    repeated, block = repeated_random(config.repeated_windows, n_ctx, len(data.words), generator, data.present)
    with torch.no_grad():
        natural, again = model.trace(data.windows[:, :-1]), model.trace(repeated)
    weights, exact = effective(model), effective(precise or model).to(torch.float64)
    return TracedModel(model, weights, exact, natural, repeated, block, again)


def printed(data: EvalData, tokens: Int[Tensor, "*rows k"]) -> str:
    """Return the printable ``tokens``, joined by ``JOINER``."""
    return JOINER.join(data.words[t] for t in tokens.flatten().tolist())


def effective(model: Transformer) -> Weights:
    """Multiply each token's embedding by the scale that the norm gives to it alone."""
    weights = model.weights()
    _, scale = model.normalise(weights.W_E.mT)
    return Weights(weights.W_E * scale, weights.W_U, weights.layers)
