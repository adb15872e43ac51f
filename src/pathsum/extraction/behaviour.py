"""Score and label the behaviors of each head (docs/framework.md §5.7), and measure logit-lens losses (§3.17)."""

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
from pathsum.records.registry import intervals
from pathsum.statistics.bootstrap import independent, mean_intervals

_SEED = 2022

WindowScore = Callable[[Pattern], Float[Tensor, "head batch"]]


@dataclass(frozen=True)
class Shown:
    """The attention patterns of the heads of one layer on windows of one kind."""

    pattern: Pattern
    even: Float[Tensor, "n head query key"]  # chance level: uniform causal attention, weighted in the same way

    @staticmethod
    def plain(pattern: Pattern) -> Shown:
        return Shown(pattern, uniform_attention(pattern.shape[-1]).expand(1, pattern.shape[1], -1, -1))

    @staticmethod
    def weighted(pattern: Pattern, read: Tensor, heads: Sequence[Head]) -> Shown:
        """Weight both by the norm of what each head moves (docs/framework.md §3.14); ``read`` is the layer's input."""
        even = uniform_attention(pattern.shape[-1]).expand_as(pattern)
        return Shown(value_weighted(pattern, read, heads), value_weighted(even, read, heads))


@dataclass(frozen=True)
class Measure:
    """The scores of heads for one behavior, by window."""

    behaviour: str
    values: Float[Tensor, "head batch"]
    chance: Float[Tensor, "head"]
    documents: Int[Tensor, "batch"]  # document of each window; intervals resample documents


def by_layer(measured: Iterable[Sequence[Measure]]) -> list[Measure]:
    return [
        Measure(of[0].behaviour, torch.cat([m.values for m in of]), torch.cat([m.chance for m in of]), of[0].documents)
        for of in zip(*measured, strict=True)
    ]


def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``labels`` (no rows without layers) and ``lens``."""
    generator = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        read = reads(trained.model, trained.natural)
        return {
            "labels": label_rows(trained, data, config, read, generator) if trained.weights.layers else [],
            "lens": lens_rows(trained, read, data, generator),
        }


def reads(model: Transformer, trace: Trace) -> list[Float[Tensor, "batch pos d_model"]]:
    """Return the normalized residual stream that each layer reads, and then the one that the unembedding reads."""
    return [model.normalise(stream)[0] for stream in trace.streams]


def label_rows(
    trained: TrainedModel, data: EvalData, config: ExtractConfig, read: Sequence[Tensor], generator: torch.Generator
) -> list[LabelRow]:
    """Score every head for every behavior, and label it (docs/framework.md §5.7)."""
    documents, patterns = data.window_documents, trained.natural.patterns
    judged = documents.unique(return_inverse=True)[1] % 2 == 1
    best = [best_offset(pattern[~judged]) for pattern in patterns]
    offsets = torch.cat(best)

    def at_best(pattern: Pattern, distances: Int[Tensor, "head"]) -> list[Measure]:
        score = partial(by_window, partial(at_offset, distances=distances))
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
            rows.append(
                LabelRow(
                    layer=layer,
                    head=head,
                    behaviour=s.behaviour,
                    **intervals("", score=s.interval),
                    chance=s.chance,
                    threshold=s.threshold,
                    distance=distance,
                    labelled=behaviour_of(s.behaviour) in given,
                )
            )
    return rows


def _on_text(pattern: Pattern, read: Tensor, heads: Sequence[Head], data: EvalData) -> list[Measure]:
    text, weighted = Shown.plain(pattern), Shown.weighted(pattern, read, heads)
    keys, documents = followers(data.windows[:, :-1]), data.window_documents
    repeating, bos = documents[keys.any((-2, -1))], partial(by_window, positional.bos)
    return [
        _measure("previous token", partial(by_window, positional.previous_token), text, documents),
        _measure("two tokens back", partial(by_window, two_back), text, documents),
        _measure("induction: natural", _after(keys), text, repeating),
        _measure("attends to BOS (attention sink)", bos, text, documents),
        _measure("BOS, value-weighted", bos, weighted, documents),
        _measure("natural, value-weighted", _after(keys), weighted, repeating),
    ]


def _on_repeats(trained: TrainedModel) -> list[Measure]:
    block, trace, tokens = trained.block, trained.repeated, trained.repeated_tokens
    matching = partial(by_window, partial(induction.prefix_matching, block=block))

    def matched(pattern: Tensor, read: Tensor, heads: Sequence[Head]) -> list[Measure]:
        copies = Shown.plain(pattern)
        return [
            _measure("duplicate token", partial(by_window, partial(duplicate_token, block=block)), copies),
            _measure("induction: uniform", matching, copies),
            _measure("uniform, value-weighted", matching, Shown.weighted(pattern, read, heads)),
        ]

    def copying(output: Tensor, tokens: Tensor) -> Tensor:
        return induction.copying(output, tokens, trained.weights.W_U, block)

    outputs = torch.cat(trace.outputs, 1)
    copied = by_window(copying, outputs, tokens)
    # A head that always writes the same vector raises some tokens, so chance is the score on another window's tokens.
    copied_by_chance = by_window(copying, outputs, tokens.roll(1, 0)).mean(-1)
    layers = zip(trace.patterns, reads(trained.model, trace), trained.weights.layers, strict=False)
    return [
        *by_layer(matched(*layer) for layer in layers),
        Measure("copies the next token", copied, copied_by_chance, independent(copied)),
    ]


def _by_frequency(
    trained: TrainedModel, data: EvalData, config: ExtractConfig, generator: torch.Generator
) -> list[Measure]:
    """Score induction on repeated random tokens that are sampled by corpus frequency."""
    tokens = data.repeats(config.repeated_windows, trained.model.config.n_ctx, generator, data.unigram)
    keys, patterns = followers(tokens), trained.model.trace(tokens).patterns
    shown = map(Shown.plain, patterns)
    return by_layer([_measure("induction: by frequency", _after(keys), some)] for some in shown)


def _measure(
    behaviour: str, score: WindowScore, shown: Shown, documents: Int[Tensor, "batch"] | None = None
) -> Measure:
    """Score the patterns of each window, and uniform attention for the chance level."""
    values, chance = score(shown.pattern), score(shown.even).mean(-1)
    return Measure(behaviour, values, chance, independent(values) if documents is None else documents)


def _after(keys: Bool[Tensor, "batch query key"]) -> WindowScore:
    """Score the attention to ``keys``, the followers of earlier occurrences of the current token."""
    return lambda pattern: after_earlier(pattern.expand(len(keys), -1, -1, -1), keys)


def lens_rows(
    trained: TrainedModel, read: Sequence[Tensor], data: EvalData, generator: torch.Generator
) -> list[LensRow]:
    """Measure the held-out loss if the residual stream before the first layer and after each layer is unembedded."""
    losses = lens_losses(read, trained.weights.W_U, data.windows[:, 1:], trained.model.b_U)
    found = mean_intervals(losses, data.window_documents, generator)
    return [LensRow(layers=n, **intervals("", loss_nats=i)) for n, i in enumerate(found)]
