"""Detectors, by name. Each yields units, which say of one structure of a synthetic text whether it is present in the
model and whether it is found. A structure gives no unit if its presence is not known."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import torch

from pathsum.calibration.skip_trigrams import found_by_model
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.circuits.atlas import Triple
from pathsum.circuits.bigram import direct_path
from pathsum.extraction import atlas, content, framework
from pathsum.records.paths import ContentScoreRow
from pathsum.statistics.phase_change import onset

T = TypeVar("T")
Unit = tuple[bool, bool]  # present, found
Detector = Callable[[SyntheticModel], Iterator[Unit]]

PREFERS_NATS = 1.0  # smallest preference for the token after a match of a head whose keys are judged
CHANGED_NATS = 1.0  # smallest decrease of the loss on copied text that counts as a change
UNUSED_NATS = 0.1  # largest effect on the loss of an edge that is absent
USED_NATS = 0.5  # smallest effect on the loss of an edge that is present, or of a head whose edges are tested
SUCCESSORS = 5  # number of most likely next words that are compared, for each word


def compared(present: set[T], found: set[T]) -> Iterator[Unit]:
    """Yield a unit for each element of ``present`` or ``found``."""
    return ((unit in present, unit in found) for unit in present | found)


def some_head(present: bool, heads: Iterable[bool]) -> Iterator[Unit]:
    """Yield one unit if some head of a layer must have the structure (``present``), otherwise one per head."""
    if present:
        yield True, any(heads)
    else:
        yield from ((False, found) for found in heads)


def copies(model: SyntheticModel, layer: int) -> bool:
    """Return whether some head of the layer must copy."""
    config = model.text.config
    able = config.model.smeared_keys if config.model.n_layers == 1 else layer == 1
    return able and config.corpus.repeat_share > 0


def previous_token(model: SyntheticModel) -> Iterator[Unit]:
    """Yield a unit per head: whether it must have the label "previous token", and whether it has it."""
    config = model.text.config
    if config.model.n_layers == 1 or not config.train.tokens:
        for row in model.labels:
            if row.behaviour == "previous token":
                yield config.corpus.two_back_spread > 0 and config.train.tokens > 0, row.labelled


def induction(model: SyntheticModel) -> Iterator[Unit]:
    """Yield, layer by layer, whether heads must have the label "induction", and whether they have it."""
    rows = [row for row in model.labels if row.behaviour == "induction: uniform"]
    for layer in range(model.text.config.model.n_layers):
        yield from some_head(copies(model, layer), [row.labelled for row in rows if row.layer == layer])


def copying(model: SyntheticModel) -> Iterator[Unit]:
    """Yield, layer by layer, whether heads must copy, and whether they copy by their OV eigenvalues."""
    corpus, rows = model.text.config.corpus, framework.head_rows(model.trained, model.data)
    plain = not (corpus.repeat_share or corpus.questions or corpus.n_answers)
    for layer in range(model.text.config.model.n_layers):
        if plain or copies(model, layer):
            yield from some_head(copies(model, layer), [row.copies for row in rows if row.layer == layer])


def keys_of_previous_token(model: SyntheticModel) -> Iterator[Unit]:
    """Yield whether second-layer heads must compare current with previous tokens, and whether they do (§2.5)."""
    if model.text.config.model.n_layers != 2 or not model.text.rules:
        return
    heads = range(model.text.config.model.n_heads)
    rows = content.score_rows(model.trained, {(1, h): 0.0 for h in heads})  # their exactness errors are not needed
    found = [compares_with_previous([row for row in rows if row.head == h]) for h in heads]
    yield from some_head(copies(model, 1), found)


def compares_with_previous(rows: list[ContentScoreRow]) -> bool:
    """Return whether at least half of a head's preference compares the current token with the key's previous one."""
    whole = sum(row.preference_nats for row in rows)
    part = sum(row.preference_nats for row in rows if (row.query, row.key) == ("0", "1"))
    return whole >= PREFERS_NATS and part >= 0.5 * whole


def skip_trigrams(model: SyntheticModel) -> Iterator[Unit]:
    """Compare the skip-trigrams of the text's rules with the confirmed ones of the atlas."""
    if triples := _triples(model):
        rows = atlas.tables(model.trained, model.data, model.config)["skip_trigrams"]
        words = model.text.words
        named = {(words[s], words[d], words[o]) for s, d, o in triples}
        yield from compared(named, {(r.source, r.destination, r.out) for r in rows if r.confirmed})


def skip_trigrams_of_model(model: SyntheticModel) -> Iterator[Unit]:
    """Compare the skip-trigrams of the text's rules with those of ``found_by_model``."""
    if triples := _triples(model):
        yield from compared(triples, found_by_model(model.trained.model, model.text.held_out))


def _triples(model: SyntheticModel) -> set[Triple]:
    """Return the skip-trigrams of the text's rules as tokens, or none for a model without heads."""
    truth = model.text.truth
    triples = zip(truth.skip_sources, truth.skip_destinations, truth.skip_outs, strict=True)
    return {(s + 1, d + 1, o + 1) for s, d, o in triples} if model.trained.weights.layers else set()


def phase_change(model: SyntheticModel) -> Iterator[Unit]:
    """Compare the onset of prefix matching with the half-way point of the fall of the loss on copied text."""
    curve = model.curve
    if not curve.matching or len(curve.tokens_seen) < 2:
        return
    found, change = onset(curve.tokens_seen, curve.matching), None
    if "copied" in curve.losses:
        change = onset(curve.tokens_seen, [-loss for loss in curve.losses["copied"]], CHANGED_NATS)
    if change and found and change.low <= found.high and found.low <= change.high:
        yield True, True
    else:
        if change:
            yield True, False
        yield False, found is not None


def composition(kinds: str, least: float = USED_NATS) -> Detector:
    """Return a detector of edges of ``kinds`` (of "QKV") into heads with an effect of ``least`` nats or more."""

    def detector(model: SyntheticModel) -> Iterator[Unit]:
        for edge, nats in model.edges.items():
            if edge[0] in kinds and model.late[edge[2]] >= least and not UNUSED_NATS < nats < USED_NATS:
                yield nats >= USED_NATS, model.composition[edge].composes

    return detector


def bigrams(model: SyntheticModel) -> Iterator[Unit]:
    """Compare each word's SUCCESSORS most likely next words in the text's table with those of the direct path."""
    if not model.trained.weights.layers:
        table = torch.tensor(model.text.truth.bigram)
        path = direct_path(model.trained.weights)
        found = (path.left[1:] @ path.right[:, 1:]).mT.topk(SUCCESSORS).indices.tolist()
        for ours, theirs in zip(table.topk(SUCCESSORS).indices.tolist(), found, strict=True):
            yield from compared(set(ours), set(theirs))


DETECTORS: dict[str, Detector] = {
    "previous_token": previous_token,
    "induction": induction,
    "copying": copying,
    "keys_of_previous_token": keys_of_previous_token,
    "skip_trigram": skip_trigrams,
    "skip_trigram_model": skip_trigrams_of_model,
    "phase_change": phase_change,
    "composition_q": composition("Q"),
    "composition_k": composition("K"),
    "composition_v": composition("V"),
    "composition": composition("QKV"),
    "composition_all_heads": composition("QKV", least=-math.inf),
    "bigram": bigrams,
}
