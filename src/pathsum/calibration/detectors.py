"""What must each detector find in a world, and what does it find? One unit after another, as (planted, found); what
cannot be known is left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from pathsum.calibration.skip_trigrams import found_by_model
from pathsum.calibration.world import Grown
from pathsum.circuits.bigram import direct_path
from pathsum.extraction import atlas, content, framework
from pathsum.records.content import ContentScoreRow
from pathsum.records.heads import LabelRow
from pathsum.statistics.phase_change import Onset, onset

SUCCESSORS = 5  # of each word, the likeliest
UNUSED_NATS = 0.1  # most that depends on an edge that is not relied on
USED_NATS = 0.5  # least that depends on an edge or a head that is
PREFERS_NATS = 1.0  # least preference for the token after a match that has parts to speak of
CHANGED_NATS = 1.0  # least fall of the loss on planted copies that is a change
T = TypeVar("T")
Unit = tuple[bool, bool]  # planted, found
Detector = Callable[[Grown], Iterator[Unit]]


def bigrams(grown: Grown) -> Iterator[Unit]:
    """Each word's likeliest successors: by the table, and by the direct path of models without layers."""
    if not grown.subject.weights.layers:
        table = torch.tensor(grown.world.truth.bigram)
        path = direct_path(grown.subject.weights)
        found = (path.left[1:] @ path.right[:, 1:]).mT.topk(SUCCESSORS).indices.tolist()
        for ours, theirs in zip(table.topk(SUCCESSORS).indices.tolist(), found, strict=True):
            yield from _compared(set(ours), set(theirs))


def skip_trigrams(grown: Grown) -> Iterator[Unit]:
    """The planted triples, and those of the atlas that the held-out text bears out."""
    if planted := _triples(grown):
        rows = atlas.tables(grown.subject, grown.seen, grown.how)["skip_trigrams"]
        words = grown.world.words
        named = {(words[s], words[d], words[o]) for s, d, o in planted}
        yield from _compared(named, {(r.source, r.destination, r.out) for r in rows if r.borne_out})


def skip_trigrams_of_model(grown: Grown) -> Iterator[Unit]:
    """The planted triples, and those that the model's heads are worth something by, whatever the text says."""
    if planted := _triples(grown):
        yield from _compared(planted, found_by_model(grown.subject.model, grown.world.held_out))


def previous_token(grown: Grown) -> Iterator[Unit]:
    """The one head of one layer, where the word before the last tells of the next; and untrained heads. With more heads
    it is not known which of them sees to it."""
    config = grown.world.config
    if config.model.n_layers == 1 or not config.train.tokens:
        for row in _labels(grown, "previous token"):
            yield config.corpus.two_back_spread > 0 and config.train.tokens > 0, row.labelled


def induction(grown: Grown) -> Iterator[Unit]:
    """Some head of the last layer where text repeats itself and keys can know what stood before them; no other head."""
    for layer, labelled in _by_layer(grown, [(r.layer, r.labelled) for r in _labels(grown, "induction: uniform")]):
        if _copies(grown, layer):
            yield True, any(labelled)
        else:
            yield from ((False, found) for found in labelled)


def copying(grown: Grown) -> Iterator[Unit]:
    """Some head of a layer that must write what it reads, by the eigenvalues of its OV circuit: induction heads are
    such. Heads of text without copies or answers have no reason to."""
    heads = framework.head_rows(grown.subject, grown.seen)
    for layer, copies in _by_layer(grown, [(head.layer, head.copies) for head in heads]):
        if _copies(grown, layer):
            yield True, any(copies)
        elif _plain(grown):
            yield from ((False, found) for found in copies)


def composition(kinds: str, least: float = USED_NATS) -> Detector:
    """Every edge of these kinds into a head on which the loss depends by ``least`` nats: there if the model relies on
    the edge, left out where that is in doubt. The loss does not say what a head reads that it does not need."""

    def detector(grown: Grown) -> Iterator[Unit]:
        for edge, nats in grown.edges.items():
            if edge[0] in kinds and grown.late[edge[2]] >= least and not UNUSED_NATS < nats < USED_NATS:
                yield nats >= USED_NATS, grown.composition[edge].composes

    return detector


def keys_of_previous_token(grown: Grown) -> Iterator[Unit]:
    """Some head of the second layer of two, where text repeats itself: its scores must compare the current token with
    the token before the key. No other rule asks that of a head."""
    if grown.world.config.model.n_layers != 2 or not grown.world.rules:
        return
    heads = range(grown.world.config.model.n_heads)
    rows = content.score_rows(grown.subject, {(1, h): 0.0 for h in heads})  # the sums' errors are not asked for
    found = [_compares_with_previous([row for row in rows if row.head == h]) for h in heads]
    if _copies(grown, 1):
        yield True, any(found)
    else:
        yield from ((False, one) for one in found)


def phase_change(grown: Grown) -> Iterator[Unit]:
    """When the loss on planted copies is half-way down, and when prefix matching is half-way up: found if no
    evaluation lies between. A change at another time is found where none was planted."""
    curve = grown.curve
    if not curve.matching or len(curve.tokens_seen) < 2:
        return
    found, planted = onset(curve.tokens_seen, curve.matching), None
    if "copied" in curve.losses:
        planted = onset(curve.tokens_seen, [-loss for loss in curve.losses["copied"]], CHANGED_NATS)
    if planted and found and _at_once(planted, found):
        yield True, True
    else:
        if planted:
            yield True, False
        yield False, found is not None


DETECTORS: dict[str, Detector] = {
    "bigram": bigrams,
    "skip_trigram": skip_trigrams,
    "skip_trigram_model": skip_trigrams_of_model,
    "previous_token": previous_token,
    "induction": induction,
    "copying": copying,
    "composition_q": composition("Q"),
    "composition_k": composition("K"),
    "composition_v": composition("V"),
    "composition": composition("QKV"),
    "composition_all_heads": composition("QKV", least=-math.inf),
    "keys_of_previous_token": keys_of_previous_token,
    "phase_change": phase_change,
}


def _compared(planted: set[T], found: set[T]) -> Iterator[Unit]:
    return ((unit in planted, unit in found) for unit in planted | found)


def _triples(grown: Grown) -> set[tuple[int, int, int]]:
    """Planted skip-trigrams as tokens, where there is a head to learn them."""
    truth = grown.world.truth
    triples = zip(truth.skip_sources, truth.skip_destinations, truth.skip_outs, strict=True)
    return {(s + 1, d + 1, o + 1) for s, d, o in triples} if grown.subject.weights.layers else set()


def _labels(grown: Grown, test: str) -> list[LabelRow]:
    return [row for row in grown.labels if row.behaviour == test]


def _by_layer(grown: Grown, heads: list[tuple[int, bool]]) -> Iterator[tuple[int, list[bool]]]:
    for layer in range(grown.world.config.model.n_layers):
        yield layer, [found for at, found in heads if at == layer]


def _copies(grown: Grown, layer: int) -> bool:
    model = grown.world.config.model
    able = model.smeared_keys if model.n_layers == 1 else layer == 1
    return able and grown.world.config.corpus.repeat_share > 0


def _plain(grown: Grown) -> bool:
    corpus = grown.world.config.corpus
    return not (corpus.repeat_share or corpus.questions or corpus.n_answers)


def _compares_with_previous(rows: list[ContentScoreRow]) -> bool:
    """At least half of a preference of ``PREFERS_NATS`` or more, by the content read at query and key."""
    whole = sum(row.preference_nats for row in rows)
    part = sum(row.preference_nats for row in rows if (row.query, row.key) == ("0", "1"))
    return whole >= PREFERS_NATS and part >= 0.5 * whole


def _at_once(a: Onset, b: Onset) -> bool:
    return a.low <= b.high and b.low <= a.high
