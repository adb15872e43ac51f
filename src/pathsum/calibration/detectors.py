"""What must each detector find in a planted world, and what does it find? One unit after another, as
(planted, found); what cannot be known is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import torch

from pathsum.calibration.edges import composed
from pathsum.calibration.world import Grown
from pathsum.circuits.bigram import direct_path
from pathsum.circuits.phase_change import Onset, onset
from pathsum.circuits.weights import Weights
from pathsum.extraction import atlas, framework
from pathsum.records import HeadRow, LabelRow

SUCCESSORS = 5  # of each word, the likeliest
UNUSED_NATS, USED_NATS = 0.1, 0.5  # most that an edge costs that a model does not rely on, and least that one does
CHANGED_NATS = 1.0  # least fall of the loss on planted copies that is a change
T = TypeVar("T")
Unit = tuple[bool, bool]  # planted, found
Detector = Callable[[Sequence[Grown]], Iterator[Unit]]


def bigrams(models: Sequence[Grown]) -> Iterator[Unit]:
    """Each word's likeliest successors: by the table, and by the direct path of models without layers."""
    for grown in models:
        if not grown.subject.weights.layers:
            table = torch.tensor(grown.world.truth.bigram)
            path = direct_path(grown.subject.weights)
            found = (path.left[1:] @ path.right[:, 1:]).mT.topk(SUCCESSORS).indices.tolist()
            for ours, theirs in zip(table.topk(SUCCESSORS).indices.tolist(), found, strict=True):
                yield from _compared(set(ours), set(theirs))


def skip_trigrams(models: Sequence[Grown]) -> Iterator[Unit]:
    """The planted triples, and those of the atlas that the held-out text bears out."""
    for grown in models:
        truth, words = grown.world.truth, grown.world.truth.words
        if truth.skip_sources and grown.subject.weights.layers:
            triples = zip(truth.skip_sources, truth.skip_destinations, truth.skip_outs, strict=True)
            rows = atlas.tables(grown.subject, grown.seen, grown.how)["skip_trigrams"]
            listed = {(r.source, r.destination, r.out) for r in rows if r.borne_out}
            yield from _compared({(words[s], words[d], words[o]) for s, d, o in triples}, listed)


def previous_token(models: Sequence[Grown]) -> Iterator[Unit]:
    """First-layer heads where the word before the last tells of the next. In lookups either layer's may see to it, and
    none counts."""
    for grown in (grown for grown in models if not grown.world.config.corpus.n_answers):
        told = grown.world.config.corpus.two_back_spread > 0 and grown.world.config.train.tokens > 0
        for row in _labels(grown, "previous token"):
            yield told and row.layer == 0, row.labelled


def induction(models: Sequence[Grown]) -> Iterator[Unit]:
    """The last layer's head where text repeats itself and keys can know what stood before them."""
    for grown in models:
        for row in _labels(grown, "induction: uniform"):
            yield _copies(grown, row.layer), row.labelled


def copying(models: Sequence[Grown]) -> Iterator[Unit]:
    """Heads that must write what they read, by the eigenvalues of their OV circuits; induction heads are such. Heads
    of text without copies or answers have no reason to."""
    for grown in models:
        for head in _heads(grown):
            if _copies(grown, head.layer):
                yield True, head.copies
            elif _plain(grown):
                yield False, head.copies


def composition(kind: str) -> Detector:
    """The edge that a text asks for, Q for lookups, K for copies and V for questions: there if the model relies on it.
    And as many that cannot be there: from a head of one model to the later head of the next; they share no stream."""

    def detector(models: Sequence[Grown]) -> Iterator[Unit]:
        asked = [g for g in models if _asks(g, kind)]
        for ours, others in pairwise([*asked, *asked[:1]]):
            W = ours.subject.weights
            yield from _used(ours, kind)
            if ours is not others:  # a lone model has no next one
                later = others.subject.weights.layers[1]
                yield False, kind in composed(Weights(W.W_E, W.W_U, (W.layers[0], later)), ours.how)

    return detector


def any_composition(models: Sequence[Grown]) -> Iterator[Unit]:
    """Every edge, whether or not the text asks for it: there if the model relies on it."""
    for grown in models:
        for kind in grown.edge_costs:
            yield from _used(grown, kind)


def phase_change(models: Sequence[Grown]) -> Iterator[Unit]:
    """When the loss on planted copies is half-way down, and when prefix matching is half-way up: found if no
    evaluation lies between. A change at another time is found where none was planted."""
    for grown in models:
        log = grown.subject.log
        if not grown.subject.weights.layers or len(log) < 2:
            continue
        tokens = [at.tokens_seen for at in log]
        matching = [max(score for layer in at.prefix_matching for score in layer) for at in log]
        found, planted = onset(tokens, matching), None
        if "copied" in grown.losses:
            planted = onset(tokens, [-loss for loss in grown.losses["copied"]], CHANGED_NATS)
        if planted and found and _at_once(planted, found):
            yield True, True
        else:
            if planted:
                yield True, False
            yield False, found is not None


DETECTORS: dict[str, Detector] = {
    "bigram": bigrams,
    "skip_trigram": skip_trigrams,
    "previous_token": previous_token,
    "induction": induction,
    "copying": copying,
    "composition_q": composition("Q"),
    "composition_k": composition("K"),
    "composition_v": composition("V"),
    "composition": any_composition,
    "phase_change": phase_change,
}


def _compared(planted: set[T], found: set[T]) -> Iterator[Unit]:
    return ((unit in planted, unit in found) for unit in planted | found)


def _labels(grown: Grown, test: str) -> list[LabelRow]:
    return [row for row in grown.labels if row.behaviour == test]


def _heads(grown: Grown) -> list[HeadRow]:
    return framework.head_rows(grown.subject, grown.seen)


def _copies(grown: Grown, layer: int) -> bool:
    model = grown.world.config.model
    able = model.smeared_keys if model.n_layers == 1 else layer == 1
    return able and grown.world.config.corpus.repeat_share > 0


def _plain(grown: Grown) -> bool:
    corpus = grown.world.config.corpus
    return not (corpus.repeat_share or corpus.questions or corpus.n_answers)


def _asks(grown: Grown, kind: str) -> bool:
    corpus, model = grown.world.config.corpus, grown.world.config.model
    rule = {"Q": corpus.n_answers > 0, "K": corpus.repeat_share > 0, "V": corpus.questions}[kind]
    return rule and model.n_layers == 2 and not model.smeared_keys


def _used(grown: Grown, kind: str) -> Iterator[Unit]:
    """The model's edge of ``kind``, unless its worth is in doubt."""
    cost = grown.edge_costs[kind]
    if not UNUSED_NATS < cost < USED_NATS:
        yield cost >= USED_NATS, kind in grown.composed


def _at_once(a: Onset, b: Onset) -> bool:
    return a.low <= b.high and b.low <= a.high
