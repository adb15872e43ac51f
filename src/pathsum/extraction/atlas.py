"""The skip-trigrams that heads are worth most by on held-out text, beside the text's own lift, and their bugs.

A head with nothing to look for rests on some common token, and what it writes there is a bias towards common outs. By
its sum over the text such a bias outranks every skip-trigram, though its source tells nothing. So entries are ranked by
their effect times the hits that the text holds beyond chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.atlas import (
    Occurrences,
    Price,
    SkipTrigram,
    Triple,
    carried,
    crossed,
    effects,
    occurrences,
    price,
    strongest,
    worth,
)
from pathsum.circuits.lift import Counts, Text, counts
from pathsum.circuits.lowrank import LowRank
from pathsum.circuits.qk_ov import ov_circuit, qk_circuit
from pathsum.config import ExtractConfig
from pathsum.extraction.evidence import Evidence, Examined
from pathsum.records import SkipTrigramBugRow, SkipTrigramRow

AREA = 1 << 22  # numbers of a pattern that are looked through, which bounds memory and time
CANDIDATES = 300  # skip-trigrams of a head with the largest effect on the text, which are looked up in it
CROSSED = 60  # skip-trigrams of a head whose crossings are looked through for bugs
ENOUGH = 30  # places of source … destination in the text, under which it says nothing of a bug
SUSPECTS, BUGS = 40, 3  # the dearest crossings of a head that are looked up in the text, and listed


@dataclass(frozen=True)
class Looked:
    """A head, by its weights."""

    layer: int
    head: int
    qk: LowRank  # at the scale of bare tokens
    ov: LowRank

    def read(self, t: Triple) -> tuple[float, float]:
        """QK[destination, source] and OV[out, source]."""
        source, destination, out = t
        qk, ov = (self.qk.left[destination] @ self.qk.right[:, source], self.ov.left[out] @ self.ov.right[:, source])
        return qk.item(), ov.item()


Entry = tuple[Looked, int, SkipTrigram, float, Counts]  # with its rank, and the change in log P
Suspect = tuple[Looked, Triple, Price]


def tables(subject: Examined, seen: Evidence, how: ExtractConfig) -> dict[str, list[Any]]:
    """By field of ``Cell``."""
    entries: list[Entry] = []
    suspects: list[Suspect] = []
    windows = seen.windows[: max(1, AREA // (seen.windows.shape[1] - 1) ** 2)]
    rest = seen.held_out[~(seen.held_out[:, None] == windows).all(-1).any(1)]  # triples are chosen on the windows
    others = Text.of(rest)
    if subject.weights.layers:
        at, log_probs = occurrences(windows), subject.natural.logits[: len(windows)].log_softmax(-1)
    for looked in _heads(subject, seen):
        circuit, weight = _carried(subject, looked, at)
        found = strongest(effects(circuit, weight, at), at, max(CANDIDATES, CROSSED, how.top_k))
        for rank, (entry, c) in enumerate(_borne_out(found, others)[: how.top_k], start=1):
            entries.append((looked, rank, entry, worth(circuit, log_probs, weight, at, entry.triple), c))
        priced = [
            (looked, t, price(circuit, log_probs, weight, at, t))
            for t in crossed([entry.triple for entry in found[:CROSSED]])
            if min(looked.read(t)) > 0
        ]
        suspects += sorted(priced, key=lambda s: (-s[2].places * s[2].loss_nats, s[1]))[:SUSPECTS]
    asked = counts(others, [s[1] for s in suspects])
    return {
        "skip_trigrams": [_row(seen, *entry) for entry in entries],
        "skip_trigram_bugs": [_bug_row(seen, rank, *suspect, c) for rank, suspect, c in _bugs(suspects, asked)],
    }


def _borne_out(found: list[SkipTrigram], others: Text) -> list[tuple[SkipTrigram, Counts]]:
    """By mean effect · (hits − expected hits) in ``others``, largest first; as they were where there is no other."""
    counted = list(zip(found, counts(others, [entry.triple for entry in found]), strict=True))
    return sorted(counted, key=lambda e: -e[0].total / e[0].places * (e[1].hits - e[1].expected))


def _bugs(suspects: list[Suspect], asked: list[Counts]) -> Iterator[tuple[int, Suspect, Counts]]:
    """The dearest suspects of each head that the text holds no more often than chance, with their rank."""
    listed: dict[tuple[int, int], int] = {}
    for suspect, c in zip(suspects, asked, strict=True):
        looked, _, paid = suspect
        place = (looked.layer, looked.head)
        if c.places >= ENOUGH and c.hits <= c.expected and paid.loss_nats > 0 and listed.get(place, 0) < BUGS:
            listed[place] = listed.get(place, 0) + 1
            yield listed[place], suspect, c


def _row(seen: Evidence, looked: Looked, rank: int, entry: SkipTrigram, change: float, c: Counts) -> SkipTrigramRow:
    qk_nats, ov_logit = looked.read(entry.triple)
    source, destination, out = (seen.words[token] for token in entry.triple)
    return SkipTrigramRow(
        layer=looked.layer,
        head=looked.head,
        rank=rank,
        source=source,
        destination=destination,
        out=out,
        places=entry.places,
        effect_logits=entry.total / entry.places,
        change_nats=change,
        qk_nats=qk_nats,
        ov_logit=ov_logit,
        text_places=c.places,
        text_hits=c.hits,
        text_expected=c.expected,
        text_lift=c.lift,
    )


def _bug_row(seen: Evidence, rank: int, looked: Looked, t: Triple, paid: Price, c: Counts) -> SkipTrigramBugRow:
    qk_nats, ov_logit = looked.read(t)
    source, destination, out = (seen.words[token] for token in t)
    return SkipTrigramBugRow(
        layer=looked.layer,
        head=looked.head,
        rank=rank,
        source=source,
        destination=destination,
        out=out,
        places=paid.places,
        price_nats=paid.loss_nats,
        balance_nats=paid.balance_nats,
        qk_nats=qk_nats,
        ov_logit=ov_logit,
        text_places=c.places,
        text_hits=c.hits,
        text_expected=c.expected,
        text_lift=c.lift,
    )


def _carried(subject: Examined, looked: Looked, at: Occurrences) -> tuple[LowRank, Float[Tensor, "n"]]:
    """The head's OV circuit as the stream has it, and what the head carries: norms are in the trace's scales."""
    weights, natural, n = subject.model.weights(), subject.natural, len(at.windows)
    layer, h = looked.layer, looked.head
    circuit = ov_circuit(weights, weights.layers[layer][h].W_OV)
    return circuit, carried(natural.patterns[layer][:n, h], natural.scales[layer][:n], natural.scales[-1][:n], at)


def _heads(subject: Examined, seen: Evidence) -> list[Looked]:
    w = subject.weights
    return [
        Looked(layer, h, qk_circuit(w, head.W_QK, seen.unigram), ov_circuit(w, head.W_OV))
        for layer, heads in enumerate(w.layers)
        for h, head in enumerate(heads)
    ]
