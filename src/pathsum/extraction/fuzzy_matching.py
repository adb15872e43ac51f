"""Does the induction head match tokens that are alike but not equal? (FRAMEWORK §5)

By behaviour on sequences of random tokens, by weights, and on text whose second copy has its names changed. The head is
that of training's last evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pathsum.circuits.bootstrap import mean_intervals
from pathsum.circuits.fuzzy_matching import MatchScores
from pathsum.config import ExtractConfig
from pathsum.data.bos import BOS
from pathsum.data.fuzzy_matching import KEYS, Alike, Trials, draw_trials, rename
from pathsum.extraction.evidence import Evidence, Subject
from pathsum.extraction.pairs import add_up
from pathsum.model.transformer import Transformer
from pathsum.records import FuzzyMatchingRow
from pathsum.roles import HeadRoles, Place
from pathsum.training.evaluate import token_losses

POSITIONS, SHORTEST, PASSAGES = 32, 5, 48
EQUAL, UNRELATED, CHANCE, CONTRAST = "equal", "unrelated", "chance", "renamed − another"
_SEED = 2027

Values = Iterator[tuple[str, str, Float[Tensor, "n"], Int[Tensor, "n"]]]  # kind, measure, values, what to resample


@torch.no_grad()
def tables(subject: Subject, seen: Evidence, how: ExtractConfig) -> dict[str, list[Any]]:
    """By field of ``Cell``; no rows under two layers, or where the vocabulary has too few pairs and names."""
    place, generator = HeadRoles.of(subject.log).induction, torch.Generator().manual_seed(_SEED)
    if place is None or len(subject.weights.layers) < 2:
        return {"fuzzy_matching": []}
    alike = Alike.of(seen.words, seen.unigram, generator)
    pos = min(POSITIONS, subject.model.config.n_ctx, int(alike.fillers.sum()) + 2)
    values = [*renamed_copies(subject.model, seen)]
    if alike.kinds and pos >= SHORTEST:
        values += behaviour(subject.model, place, alike, draw_trials(alike, pos, generator))
    if alike.kinds and place[0] == 1 and add_up(subject.model.config):
        values += by_weights(subject, place, alike, seen.unigram > 0)
    rows = []
    for kind, measure, value, groups in values:
        (found,) = mean_intervals(value[None], groups, generator)
        layer, head = (None, None) if measure.startswith("gain") else place
        numbers = found.mean, found.low, found.high, len(groups.unique())
        rows.append(FuzzyMatchingRow(layer, head, kind, measure, *numbers))
    return {"fuzzy_matching": rows}


def behaviour(model: Transformer, place: Place, alike: Alike, trials: Trials) -> Values:
    """Yield the head's attention to the follower, and what the model expects, with each token before the follower."""
    before = {EQUAL: alike.query, "variant": alike.variant, UNRELATED: alike.unrelated}
    shown = {name: _last(model, place, trials, token) for name, token in before.items()}
    control, chance, without = shown[UNRELATED]
    for kind, (attention, _, likely), some in _kinds(alike, shown):
        measured = {"attention": attention}
        if kind != UNRELATED:
            measured |= {"attention over unrelated": attention - control, "log-probability": likely - without}
        for measure, value in measured.items():
            yield kind, measure, value[some], alike.family[some]
    yield CHANCE, "attention", chance, alike.family


def by_weights(subject: Subject, place: Place, alike: Alike, present: Bool[Tensor, "vocab"]) -> Values:
    """Yield the head's match scores of the same pairs, in standard deviations of all pairs."""
    pattern = subject.natural.patterns[0][:, :, 1:]
    current, previous = (pattern.diagonal(at, -2, -1).mean((0, -1)) for at in (1, 0))
    head = subject.weights.layers[1][place[1]]
    scores = MatchScores.of(subject.weights, subject.model.weights().W_E, head, current, previous)
    before = {EQUAL: alike.query, "variant": alike.variant, UNRELATED: alike.unrelated}
    shown = {name: scores.standardised(alike.query, token, present) for name, token in before.items()}
    for kind, value, some in _kinds(alike, shown):
        yield kind, "match score", value[some], alike.family[some]


def _kinds(alike: Alike, shown: dict[str, Any]) -> Iterator[tuple[str, Any, Bool[Tensor, "n"]]]:
    """What was shown of each kind, and in which trials: equal and unrelated tokens in all."""
    for kind in (EQUAL, *KEYS, UNRELATED):
        some = torch.tensor([kind not in KEYS or k == kind for k in alike.kinds])
        if some.any():
            yield kind, shown["variant" if kind in KEYS else kind], some


def _last(
    model: Transformer, place: Place, trials: Trials, earlier: Int[Tensor, "n"]
) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"], Float[Tensor, "n"]]:
    """The last query's attention to the follower, to the same place in all windows, and log P(follower)."""
    trace, at = model.trace(trials.after(earlier)), trials.follower
    pattern = trace.patterns[place[0]][:, place[1], -1]
    likely = trace.logits[:, -1].log_softmax(-1).gather(1, trials.followed()[:, None])[:, 0]
    return pattern.gather(1, at[:, None])[:, 0], pattern.mean(0)[at], likely


# ---- copies with other names ----------------------------------------------------------------------------------------


def renamed_copies(model: Transformer, seen: Evidence) -> Values:
    """Yield what a first copy is worth to a second, the same or with other names: loss of that second copy behind BOS
    alone − loss behind the first. Nats per token, a mean per passage over places of three kinds."""
    block = model.config.n_ctx // 2
    passages = seen.windows[:PASSAGES, 1 : 1 + block]
    documents = seen.window_documents[:PASSAGES]
    copies = rename(passages, seen.words, seen.unigram)
    alone, twice = losses(model, copies), losses(model, passages, passages)
    gains = {
        "exact copy": twice[:, :block] - twice[:, block:],
        "renamed copy": alone - losses(model, passages, copies)[:, block:],
        "another passage": alone - losses(model, passages.roll(1, 0), copies)[:, block:],
    }
    gains[CONTRAST] = gains["renamed copy"] - gains["another passage"]
    for name, places in scored(passages, copies).items():
        some = places.any(1)
        if len(documents[some].unique()) > 1:
            for copy, gain in gains.items():
                mean = (gain * places).sum(1)[some] / places.sum(1)[some]
                yield copy, f"gain {name}", mean, documents[some]


def losses(model: Transformer, *parts: Int[Tensor, "batch some"]) -> Float[Tensor, "batch pos"]:
    """The loss of every token of the parts, one behind the other, behind BOS."""
    return token_losses(model, torch.cat([torch.full((len(parts[0]), 1), BOS), *parts], 1))


def scored(passages: Int[Tensor, "n pos"], copies: Int[Tensor, "n pos"]) -> dict[str, Bool[Tensor, "n pos"]]:
    """Which targets of a copy are scored: those that keep their name, by whether the token before keeps its own, and
    new names that the copy has had before."""
    kept = passages == copies
    before = torch.nn.functional.pad(kept[:, :-1], (1, 0))
    inside = torch.arange(kept.shape[1]) > 0
    again = (copies[:, :, None] == copies[:, None]).tril(-1).any(-1)
    return {
        "after a kept token": kept & before & inside,
        "after a renamed token": kept & ~before & inside,
        "of a renamed token": ~kept & again,
    }
