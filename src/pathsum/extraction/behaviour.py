"""Score and label the behaviors of each head (docs/framework.md §5.7), and measure the logit-lens loss before the first
layer and after each layer (docs/framework.md §3.17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pathsum.behavior import induction, positional
from pathsum.behavior.labels import (
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
from pathsum.core.weights import Head
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.heads import LabelRow
from pathsum.records.paths import LensRow
from pathsum.statistics.bootstrap import independent, mean_intervals
from pathsum.text.repeated import repeated_random

_SEED = 2022


@dataclass(frozen=True)
class Shown:
    """The attention patterns of the heads of one layer on windows of one kind, and their chance level."""

    pattern: Pattern
    even: Float[Tensor, "n head query key"]  # chance level: uniform causal attention, weighted in the same way

    @staticmethod
    def plain(pattern: Pattern) -> Shown:
        """Return the patterns as they are, with uniform causal attention as their chance level."""
        return Shown(pattern, uniform_attention(pattern.shape[-1]).expand(1, pattern.shape[1], -1, -1))

    @staticmethod
    def weighted(pattern: Pattern, read: Tensor, heads: Sequence[Head]) -> Shown:
        """Weight the patterns, and uniform causal attention, by the norm of what each head moves
        (docs/framework.md §3.14). ``read`` is what the layer reads."""
        even = uniform_attention(pattern.shape[-1]).expand_as(pattern)
        return Shown(value_weighted(pattern, read, heads), value_weighted(even, read, heads))


@dataclass(frozen=True)
class Measure:
    """The scores of heads (of one layer, or of all layers) for one behavior, by window, with their chance levels."""

    behaviour: str
    values: Float[Tensor, "head batch"]
    chance: Float[Tensor, "head"]
    documents: Int[Tensor, "batch"]  # document of each window; intervals resample documents


def by_layer(measured: Iterable[Sequence[Measure]]) -> list[Measure]:
    """Join the measures of each layer into measures of all heads."""
    return [
        Measure(of[0].behaviour, torch.cat([m.values for m in of]), torch.cat([m.chance for m in of]), of[0].documents)
        for of in zip(*measured, strict=True)
    ]


def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``labels`` (behaviors of each head; no rows without layers) and ``lens`` (logit-lens losses).
    ValueError if the windows are from a single document."""
    generator = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        read = reads(trained.model, data.windows[:, :-1], trained.natural)
        return {
            "labels": label_rows(trained, data, config, read, generator) if trained.weights.layers else [],
            "lens": lens_rows(read, trained.weights.W_U, data, generator),
        }


def reads(model: Transformer, tokens: Int[Tensor, "batch pos"], trace: Trace) -> list[Tensor]:
    """Return the normalized residual stream that each layer reads, and then the one that the unembedding reads."""
    stream = model.embed(tokens)
    found = [model.normalise(stream)[0]]
    for output in trace.outputs:
        stream = stream + output.sum(1)
        found.append(model.normalise(stream)[0])
    return found


def label_rows(
    trained: TrainedModel, data: EvalData, config: ExtractConfig, read: Sequence[Tensor], generator: torch.Generator
) -> list[LabelRow]:
    """Score every head for every behavior, and label it (docs/framework.md §5.7)."""
    documents, patterns = data.window_documents, trained.natural.patterns
    judged = documents.unique(return_inverse=True)[1] % 2 == 1
    best = [best_offset(pattern[~judged]) for pattern in patterns]
    offsets = torch.cat(best)

    def at_best(pattern: Pattern, distances: Int[Tensor, "head"]) -> list[Measure]:
        score = partial(at_offset, distances=distances)
        return [_measure("offset", score, Shown.plain(pattern[judged]), documents[judged])]

    found = [
        *by_layer(map(at_best, patterns, best)),
        *by_layer(_on_text(*layer, data) for layer in zip(patterns, read, trained.weights.layers, strict=False)),
        *_on_repeats(trained),
        *_by_frequency(trained, data, config, generator),
    ]
    # A bootstrap needs two documents, and fewer may contain the repetitions that a behavior is scored on.
    some = [m for m in found if len(m.documents.unique()) > 1]
    known = [(m, mean_intervals(m.values, m.documents, generator)) for m in some]
    rows = []
    for at, (layer, head) in enumerate(trained.places):
        scores = [Score(m.behaviour, intervals[at], m.chance[at].item()) for m, intervals in known]
        given = labels(scores)
        for s in scores:
            distance = int(offsets[at]) if s.behaviour == "offset" else None
            numbers = (*s.interval, s.chance, s.threshold, distance)
            rows.append(LabelRow(layer, head, s.behaviour, *numbers, labelled=behaviour_of(s.behaviour) in given))
    return rows


def _on_text(pattern: Pattern, read: Tensor, heads: Sequence[Head], data: EvalData) -> list[Measure]:
    text, weighted = Shown.plain(pattern), Shown.weighted(pattern, read, heads)
    keys, documents = followers(data.windows[:, :-1]), data.window_documents
    repeating = documents[keys.any((-2, -1))]
    return [
        _measure("previous token", positional.previous_token, text, documents),
        _measure("two tokens back", two_back, text, documents),
        _after("induction: natural", text, keys, repeating),
        _measure("attends to BOS (attention sink)", positional.bos, text, documents),
        _measure("BOS, value-weighted", positional.bos, weighted, documents),
        _after("natural, value-weighted", weighted, keys, repeating),
    ]


def _on_repeats(trained: TrainedModel) -> list[Measure]:
    block, trace, tokens = trained.block, trained.repeated, trained.repeated_tokens
    matching = partial(induction.prefix_matching, block=block)

    def matched(pattern: Tensor, read: Tensor, heads: Sequence[Head]) -> list[Measure]:
        copies = Shown.plain(pattern)
        return [
            _measure("duplicate token", partial(duplicate_token, block=block), copies),
            _measure("induction: uniform", matching, copies),
            _measure("uniform, value-weighted", matching, Shown.weighted(pattern, read, heads)),
        ]

    def copying(output: Tensor, tokens: Tensor) -> Tensor:
        return induction.copying(output, tokens, trained.weights.W_U, block)

    outputs = torch.cat(trace.outputs, 1)
    copied = by_window(copying, outputs, tokens)
    # A head that always writes the same vector raises some tokens, so chance is the score on another window's tokens.
    copied_by_chance = by_window(copying, outputs, tokens.roll(1, 0)).mean(-1)
    layers = zip(trace.patterns, reads(trained.model, tokens, trace), trained.weights.layers, strict=False)
    return [
        *by_layer(matched(*layer) for layer in layers),
        Measure("copies the next token", copied, copied_by_chance, independent(copied)),
    ]


def _by_frequency(
    trained: TrainedModel, data: EvalData, config: ExtractConfig, generator: torch.Generator
) -> list[Measure]:
    """Score induction on repeated random tokens that are sampled by corpus frequency."""
    n_ctx = trained.model.config.n_ctx
    tokens, _ = repeated_random(config.repeated_windows, n_ctx, len(data.words), generator, data.unigram)
    keys, patterns = followers(tokens), trained.model.trace(tokens).patterns
    return by_layer([_after("induction: by frequency", Shown.plain(pattern), keys)] for pattern in patterns)


def _measure(
    behaviour: str, score: Callable[[Pattern], Tensor], shown: Shown, documents: Int[Tensor, "batch"] | None = None
) -> Measure:
    """Apply ``score`` to each window, and to uniform attention for the chance level."""
    values, chance = by_window(score, shown.pattern), by_window(score, shown.even).mean(-1)
    return Measure(behaviour, values, chance, independent(values) if documents is None else documents)


def _after(
    behaviour: str,
    shown: Shown,
    keys: Bool[Tensor, "batch query key"],
    documents: Int[Tensor, "n"] | None = None,
) -> Measure:
    """Score the attention to ``keys``, the followers of earlier occurrences of the current token."""
    values = after_earlier(shown.pattern, keys)
    chance = after_earlier(shown.even.expand(len(keys), -1, -1, -1), keys).mean(-1)
    return Measure(behaviour, values, chance, independent(values) if documents is None else documents)


def lens_rows(
    read: Sequence[Tensor], W_U: Float[Tensor, "vocab d_model"], data: EvalData, generator: torch.Generator
) -> list[LensRow]:
    """Measure the loss on held-out windows if the residual stream before the first layer and after each layer is
    unembedded (docs/framework.md §3.17)."""
    losses = lens_losses(read, W_U, data.windows[:, 1:])
    found = mean_intervals(losses, data.window_documents, generator)
    return [LensRow(layers, *interval) for layers, interval in enumerate(found)]
