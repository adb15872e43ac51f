"""Measure whether the induction head matches tokens that are similar but not equal (docs/framework.md §5.13)."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pathsum.behavior.fuzzy_sequences import Alike, Trials, draw_trials, rename
from pathsum.circuits.fuzzy_matching import match_scores, standardised
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.model.opened import biases
from pathsum.model.transformer import Transformer
from pathsum.records.fuzzy_matching import FuzzyKind, FuzzyMatchingRow, FuzzyMeasure
from pathsum.records.registry import intervals
from pathsum.records.roles import HeadRoles, Place
from pathsum.statistics.bootstrap import mean_intervals
from pathsum.text.bos import BOS
from pathsum.training.evaluate import token_losses

POSITIONS, SHORTEST, PASSAGES = 32, 5, 48  # longest and shortest sequence in tokens; number of passages of text
_SEED = 2027

Values = Iterator[tuple[str, str, Float[Tensor, "n"], Int[Tensor, "n"]]]  # kind, measure, values, groups to resample


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``fuzzy_matching``; no rows with fewer than two layers or an empty evaluation log."""
    place, generator = HeadRoles.of(trained.log).induction, torch.Generator().manual_seed(_SEED)
    if place is None or len(trained.weights.layers) < 2:
        return {"fuzzy_matching": []}
    alike = Alike.of(data.words, data.unigram, generator)
    pos = min(POSITIONS, trained.model.config.n_ctx, int(alike.fillers.sum()) + 2)
    values = [*renamed_copies(trained.model, data, generator)]
    if alike.kinds and pos >= SHORTEST:
        values += behaviour(trained.model, place, alike, draw_trials(alike, pos, generator))
    if alike.kinds and place[0] == 1 and of_tokens_alone(trained):
        values += by_weights(trained, place, alike, data.unigram > 0)
    rows = []
    for kind, measure, value, groups in values:
        (found,) = mean_intervals(value[None], groups, generator)
        layer, head = (None, None) if measure.startswith(FuzzyMeasure.GAIN) else place
        rows.append(
            FuzzyMatchingRow(
                layer=layer,
                head=head,
                kind=kind,
                measure=measure,
                **intervals("", value=found),
                n=len(groups.unique()),
            )
        )
    return {"fuzzy_matching": rows}


def of_tokens_alone(trained: TrainedModel) -> bool:
    """Return whether scores are those of tokens, besides sinusoids and biases by distance."""
    heads = [trained.model.attention(layer) for layer in range(len(trained.weights.layers))]
    plain = all(
        of.bilinear and of.smear is None and biases(of, h, 1) is None for of in heads for h in range(len(of.W_Q))
    )
    return plain and not trained.has_constants


def behaviour(model: Transformer, place: Place, alike: Alike, trials: Trials) -> Values:
    """Yield the head's attention to the follower and its log-probability, by the token before the follower."""
    shown = [_last(model, place, trials, token) for token in (alike.query, alike.variant, alike.unrelated)]
    attention, chance, likely = (torch.stack(found) for found in zip(*shown, strict=True))
    yield from _by_kind(alike, attention, FuzzyMeasure.ATTENTION, FuzzyMeasure.ATTENTION_OVER)
    yield from _by_kind(alike, likely, None, FuzzyMeasure.LIKELY_OVER)
    yield FuzzyKind.CHANCE, FuzzyMeasure.ATTENTION, chance[-1], alike.family


def by_weights(trained: TrainedModel, place: Place, alike: Alike, present: Bool[Tensor, "vocab"]) -> Values:
    """Yield the head's match scores for pairs of tokens, and their differences from unrelated tokens."""
    pattern = trained.natural.patterns[0][:, :, 1:]
    current, previous = (pattern.diagonal(at, -2, -1).mean((0, -1), dtype=torch.float64) for at in (1, 0))
    weights, read = (w.to(torch.float64) for w in (trained.weights, trained.model.weights()))
    scores = match_scores(weights, read.W_E, weights.layers[1][place[1]], current, previous)
    before = (alike.query, alike.variant, alike.unrelated)
    shown = torch.stack([standardised(scores, alike.query, token, present) for token in before])
    yield from _by_kind(alike, shown, FuzzyMeasure.SCORE, FuzzyMeasure.SCORE_OVER)


def _by_kind(alike: Alike, shown: Float[Tensor, "rows n"], plain: str | None, over: str) -> Values:
    """Yield, by kind, the rows of ``shown`` (equal tokens, variants, unrelated) and the first two minus the third."""
    for kind in FuzzyKind.VARIANTS:
        some = torch.tensor([k == kind for k in alike.kinds])
        if not some.any():
            continue
        values, families = shown[:, some], alike.family[some]
        for name, value in zip((FuzzyKind.equal(kind), kind, FuzzyKind.unrelated(kind)), values, strict=True):
            if plain:
                yield name, plain, value, families
            if name != FuzzyKind.unrelated(kind):
                yield name, over, value - values[2], families


def _last(
    model: Transformer, place: Place, trials: Trials, earlier: Int[Tensor, "n"]
) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"], Float[Tensor, "n"]]:
    """Return the last query's attention to the follower, its mean over all windows, and log P(follower)."""
    trace, at = model.trace(trials.after(earlier)), trials.follower
    pattern = trace.patterns[place[0]][:, place[1], -1]
    likely = trace.logits[:, -1].log_softmax(-1).gather(1, trials.followed()[:, None])[:, 0]
    return pattern.gather(1, at[:, None])[:, 0], pattern.mean(0)[at], likely


def renamed_copies(model: Transformer, data: EvalData, generator: torch.Generator) -> Values:
    """Yield the gain from a passage on its copy: the copy's loss after BOS alone minus its loss after the passage."""
    block = model.config.n_ctx // 2
    passages = data.windows[:PASSAGES, 1 : 1 + block]
    documents = data.window_documents[:PASSAGES]
    copies = rename(passages, data.words, data.unigram)
    alone, twice = losses(model, copies), losses(model, passages, passages)
    order = torch.rand(passages.shape, generator=generator).argsort(1)
    first = {
        FuzzyKind.RENAMED: passages,
        FuzzyKind.SHUFFLED: passages.gather(1, order),
        FuzzyKind.ANOTHER: passages.roll(1, 0),
    }
    gains = {name: alone - losses(model, tokens, copies)[:, block:] for name, tokens in first.items()}
    gains[FuzzyKind.OVER_SHUFFLED] = gains[FuzzyKind.RENAMED] - gains[FuzzyKind.SHUFFLED]
    gains[FuzzyKind.OVER_ANOTHER] = gains[FuzzyKind.RENAMED] - gains[FuzzyKind.ANOTHER]
    gains[FuzzyKind.EXACT] = twice[:, :block] - twice[:, block:]
    for measure, places in scored(passages, copies).items():
        some = places.any(1)
        if len(documents[some].unique()) > 1:
            for copy, gain in gains.items():
                mean = (gain * places).sum(1)[some] / places.sum(1)[some]
                yield copy, measure, mean, documents[some]


def losses(model: Transformer, *parts: Int[Tensor, "batch some"]) -> Float[Tensor, "batch pos"]:
    """Return the loss of every token of ``parts``, in nats, if the model reads BOS and then all parts in turn."""
    return token_losses(model, torch.cat([torch.full((len(parts[0]), 1), BOS), *parts], 1))


def scored(passages: Int[Tensor, "n pos"], copies: Int[Tensor, "n pos"]) -> dict[str, Bool[Tensor, "n pos"]]:
    """Return which tokens of each copy are scored, by measure."""
    kept = passages == copies
    before = torch.nn.functional.pad(kept[:, :-1], (1, 0))
    inside = torch.arange(kept.shape[1]) > 0
    again = (copies[:, :, None] == copies[:, None]).tril(-1).any(-1)
    return {
        FuzzyMeasure.KEPT: kept & before & inside,
        FuzzyMeasure.AFTER: kept & ~before & inside,
        FuzzyMeasure.NEW: ~kept & again,
    }
