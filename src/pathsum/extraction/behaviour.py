"""What each head does, what is known after each layer, and how the loss on single tokens moved in training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pathsum.behaviour.labels import (
    Pattern,
    Score,
    after_earlier,
    at_offset,
    behaviour_of,
    best_offset,
    by_window,
    duplicate_token,
    followers,
    labels,
    two_back,
    uniform_attention,
)
from pathsum.circuits.logit_lens import lens_losses
from pathsum.circuits.value_weighted import value_weighted
from pathsum.config import ExtractConfig
from pathsum.core.weights import Weights
from pathsum.data.repeated import repeated_random
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.model.transformer import Trace, Transformer
from pathsum.probes import induction, positional
from pathsum.records.heads import LabelRow
from pathsum.records.logit_lens import LensRow
from pathsum.statistics.bootstrap import independent, mean_intervals

SETTLED = 0.05  # of the training: before, every model learns which tokens are common, and nothing else is seen
_SEED = 2022


@dataclass(frozen=True)
class Shown:
    """Patterns of all heads, layer by layer, on one kind of windows."""

    pattern: Pattern
    even: Float[Tensor, "n head query key"]  # chance: attention to all of the past alike, treated in the same way

    @staticmethod
    def plain(trace: Trace) -> Shown:
        pattern = torch.cat(trace.patterns, 1)
        return Shown(pattern, uniform_attention(pattern.shape[-1]).expand(1, pattern.shape[1], -1, -1))

    @staticmethod
    def weighted(trace: Trace, read: Sequence[Tensor], weights: Weights) -> Shown:
        """By the size of what is moved."""
        layers = list(zip(trace.patterns, read, weights.layers, strict=False))
        pattern = [value_weighted(p, x, heads) for p, x, heads in layers]
        even = [value_weighted(uniform_attention(p.shape[-1]).expand_as(p), x, heads) for p, x, heads in layers]
        return Shown(torch.cat(pattern, 1), torch.cat(even, 1))


@dataclass(frozen=True)
class Measure:
    """One behaviour of all heads, layer by layer."""

    behaviour: str
    values: Float[Tensor, "head batch"]
    chance: Float[Tensor, "head"]
    documents: Int[Tensor, "batch"]

    def of(self, documents: Int[Tensor, "batch"]) -> Measure:
        """On text: windows of these documents."""
        return replace(self, documents=documents)


def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the rows of each record, by its name."""
    generator = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        read = reads(trained.model, data.windows[:, :-1], trained.natural)
        return {
            "labels": label_rows(trained, data, config, read, generator) if trained.weights.layers else [],
            "lens": lens_rows(read, trained.weights.W_U, data, generator),
        }


def reads(model: Transformer, tokens: Int[Tensor, "batch pos"], trace: Trace) -> list[Tensor]:
    """What each layer reads of the residual stream, and last what the unembedding reads."""
    stream = model.embed(tokens)
    found = [model.normalise(stream)[0]]
    for output in trace.outputs:
        stream = stream + output.sum(1)
        found.append(model.normalise(stream)[0])
    return found


def label_rows(
    trained: TrainedModel, data: EvalData, config: ExtractConfig, read: Sequence[Tensor], generator: torch.Generator
) -> list[LabelRow]:
    """Every head's score for every behaviour, and the behaviours that it is called by."""
    text = Shown.plain(trained.natural)
    documents = data.window_documents
    judged = documents.unique(return_inverse=True)[1] % 2 == 1  # every second document; the others choose the offset
    offsets = best_offset(text.pattern[~judged])
    found = [
        _measure("offset", partial(at_offset, distances=offsets), Shown(text.pattern[judged], text.even)).of(
            documents[judged]
        ),
        *_on_text(text, Shown.weighted(trained.natural, read, trained.weights), data),
        *_on_repeats(trained),
        _by_frequency(trained, data, config, generator),
    ]
    some = [m for m in found if len(m.documents.unique()) > 1]  # text may not repeat
    known = [(m, mean_intervals(m.values, m.documents, generator)) for m in some]
    places = [(layer, head) for layer, heads in enumerate(trained.weights.layers) for head in range(len(heads))]
    rows = []
    for at, (layer, head) in enumerate(places):
        scores = [Score(m.behaviour, intervals[at], m.chance[at].item()) for m, intervals in known]
        called = labels(scores)
        for s in scores:
            rows.append(
                LabelRow(
                    layer=layer,
                    head=head,
                    behaviour=s.behaviour,
                    score=s.interval.mean,
                    low=s.interval.low,
                    high=s.interval.high,
                    chance=s.chance,
                    threshold=s.threshold,
                    distance=int(offsets[at]) if s.behaviour == "offset" else None,
                    labelled=behaviour_of(s.behaviour) in called,
                )
            )
    return rows


def _on_text(text: Shown, weighted: Shown, data: EvalData) -> list[Measure]:
    keys, documents = followers(data.windows[:, :-1]), data.window_documents
    repeating = documents[keys.any((-2, -1))]
    return [
        _measure("previous token", positional.previous_token, text).of(documents),
        _measure("two tokens back", two_back, text).of(documents),
        _after("induction: natural", text, keys).of(repeating),
        _measure("attends to BOS (attention sink)", positional.bos, text).of(documents),
        _measure("BOS, value-weighted", positional.bos, weighted).of(documents),
        _after("natural, value-weighted", weighted, keys).of(repeating),
    ]


def _on_repeats(trained: TrainedModel) -> list[Measure]:
    block, trace, tokens = trained.block, trained.repeated, trained.repeated_tokens
    copies = Shown.plain(trace)
    weighted = Shown.weighted(trace, reads(trained.model, tokens, trace), trained.weights)

    def matching(pattern: Pattern) -> Tensor:
        return induction.prefix_matching(pattern, block)

    def copying(output: Tensor, tokens: Tensor) -> Tensor:
        return induction.copying(output, tokens, trained.weights.W_U, block)

    outputs = torch.cat(trace.outputs, 1)
    copied = by_window(copying, outputs, tokens)
    # a head that writes the same everywhere raises some tokens above the mean: another window's tokens say how many
    copied_by_chance = by_window(copying, outputs, tokens.roll(1, 0)).mean(-1)
    return [
        _measure("duplicate token", lambda pattern: duplicate_token(pattern, block), copies),
        _measure("induction: uniform", matching, copies),
        _measure("uniform, value-weighted", matching, weighted),
        _alone("copies the next token", copied, copied_by_chance),
    ]


def _by_frequency(trained: TrainedModel, data: EvalData, config: ExtractConfig, generator: torch.Generator) -> Measure:
    """On a random block twice whose tokens are as frequent as in the corpus: unlike in text, none foretells another."""
    n_ctx = trained.model.config.n_ctx
    tokens, _ = repeated_random(config.repeated_windows, n_ctx, len(data.words), generator, data.unigram)
    return _after("induction: by frequency", Shown.plain(trained.model.trace(tokens)), followers(tokens))


def _measure(behaviour: str, score: Callable[[Pattern], Tensor], shown: Shown) -> Measure:
    return _alone(behaviour, by_window(score, shown.pattern), by_window(score, shown.even).mean(-1))


def _after(behaviour: str, shown: Shown, keys: Bool[Tensor, "batch query key"]) -> Measure:
    even = shown.even.expand(len(keys), -1, -1, -1)
    return _alone(behaviour, after_earlier(shown.pattern, keys), after_earlier(even, keys).mean(-1))


def _alone(behaviour: str, values: Float[Tensor, "head batch"], chance: Float[Tensor, "head"]) -> Measure:
    """On random tokens: windows that share nothing."""
    return Measure(behaviour, values, chance, independent(values))


def lens_rows(
    read: Sequence[Tensor], W_U: Float[Tensor, "vocab d_model"], data: EvalData, generator: torch.Generator
) -> list[LensRow]:
    """The loss on held-out windows if the model stopped after each layer."""
    losses = lens_losses(read, W_U, data.windows[:, 1:])
    found = mean_intervals(losses, data.window_documents, generator)
    return [LensRow(layers, i.mean, i.low, i.high) for layers, i in enumerate(found)]
