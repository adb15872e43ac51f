"""The skip-trigrams that heads are worth most by on held-out text, beside the text's own lift, and their bugs.

Half of the documents choose, the other half judge. A head with nothing to look for attends to some common token, and
what it writes there is a bias towards common outs. By its sum over the text such a bias outranks every skip-trigram,
though the output does not depend on its source. So of the entries with the largest sum of effects those are listed that
the choosing documents hold beyond chance; whether the text bears them out, the judging documents say. What is said of
the listed ones that both halves hold is compared with all candidates, and with triples drawn from the text, that pass
the same two tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.atlas import (
    Occurrences,
    SkipTrigram,
    SpuriousCost,
    Triple,
    effects,
    occurrences,
    source_weight,
    spurious_cost,
    spurious_triples,
    strongest,
    worth,
)
from pathsum.circuits.qk_ov import ov_circuit, qk_circuit
from pathsum.config import ExtractConfig
from pathsum.core.lowrank import LowRank
from pathsum.extraction.inputs import EvalData, TracedModel
from pathsum.ngrams.lift import Counts, Text, counts
from pathsum.records.skip_trigrams import SkipTrigramBugRow, SkipTrigramRow, SkipTrigramTallyRow, beyond_chance
from pathsum.records.tokens import word_of

AREA = 1 << 22  # numbers of a pattern that are looked through, which bounds memory and time
CANDIDATES = 300  # skip-trigrams of a head with the largest effect on the text, which are looked up in it
CROSSED = 60  # skip-trigrams of a head whose crossings are looked through for bugs
ENOUGH = 30  # places of source … destination in the text, under which it says nothing of a bug
DRAWN = 6000  # occurrences of the text, for the base rate of copying
_SEED = 2026
SUSPECTS, BUGS = 40, 3  # the most expensive crossings of a head that are looked up in the text, and listed


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
Suspect = tuple[Looked, Triple, SpuriousCost]


def tables(trained: TracedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the rows of each record, by its name."""
    entries: list[Entry] = []
    suspects: list[Suspect] = []
    tallies: list[SkipTrigramTallyRow] = []
    document = data.documents.unique(return_inverse=True)[1]
    judging = (document - document[0]) % 2 == 1  # every second document; that of the first window chooses
    chooser, judge = (Text.of(data.held_out[half]) for half in (~judging, judging))
    shown = (~judging[: len(data.windows)]).nonzero().squeeze(-1)[: max(1, AREA // (data.windows.shape[1] - 1) ** 2)]
    if trained.weights.layers:
        at, log_probs = occurrences(data.windows[shown]), trained.natural.logits[shown].log_softmax(-1)
        words = same_words(data.words)
        base = _base_rate(at, words, chooser, judge)
    for looked in _heads(trained, data):
        circuit, weight = _carried(trained, looked, shown, at)
        found = strongest(effects(circuit, weight, at), at, max(CANDIDATES, CROSSED, config.top_k))
        triples = [entry.triple for entry in found]
        before, judged = counts(chooser, triples), counts(judge, triples)
        tallies.append(_tally(looked, triples, before, judged, words, base))
        chosen = [(entry, c) for entry, b, c in zip(found, before, judged, strict=True) if _beyond(b)]
        for rank, (entry, c) in enumerate(chosen[: config.top_k], start=1):
            entries.append((looked, rank, entry, worth(circuit, log_probs, weight, at, entry.triple), c))
        priced = [
            (looked, t, spurious_cost(circuit, log_probs, weight, at, t))
            for t in spurious_triples([entry.triple for entry in found[:CROSSED]])
            if min(looked.read(t)) > 0
        ]
        suspects += sorted(priced, key=lambda s: (-s[2].places * s[2].loss_nats, s[1]))[:SUSPECTS]
    asked = counts(judge, [s[1] for s in suspects])
    return {
        "skip_trigrams": [_row(data, *entry) for entry in entries],
        "skip_trigram_tallies": tallies,
        "skip_trigram_bugs": [_bug_row(data, rank, *suspect, c) for rank, suspect, c in _bugs(suspects, asked)],
    }


def same_words(words: Sequence[str]) -> Int[Tensor, "vocab"]:
    """Number the tokens so that those which are the same word but for case and a leading space share a number."""
    numbers: dict[str, int] = {}
    return torch.tensor([numbers.setdefault(word_of(w), len(numbers)) for w in words])


def _beyond(c: Counts) -> bool:
    return beyond_chance(c.hits, c.expected, c.lift)


def _tally(
    looked: Looked,
    triples: Sequence[Triple],
    before: Sequence[Counts],
    judged: Sequence[Counts],
    words: Int[Tensor, "vocab"],
    base: tuple[float | None, int],
) -> SkipTrigramTallyRow:
    passing = _passing(triples, before, judged)
    return SkipTrigramTallyRow(
        layer=looked.layer,
        head=looked.head,
        candidates=len(triples),
        copying=_copying(triples, words),
        told=sum(c.lift is not None for c in judged),
        borne_out=sum(map(_beyond, judged)),
        passing=len(passing),
        passing_copying=_copying(passing, words),
        base_rate=base[0],
        base_passing=base[1],
    )


def _passing(triples: Sequence[Triple], before: Sequence[Counts], judged: Sequence[Counts]) -> list[Triple]:
    """Which triples do both halves of the documents hold beyond chance?"""
    return [t for t, b, c in zip(triples, before, judged, strict=True) if _beyond(b) and _beyond(c)]


def _copying(triples: Sequence[Triple], words: Int[Tensor, "vocab"]) -> int:
    """Of how many is the output the source again?"""
    return sum(int(words[source] == words[out]) for source, _, out in triples)


def _base_rate(at: Occurrences, words: Int[Tensor, "vocab"], chooser: Text, judge: Text) -> tuple[float | None, int]:
    """Draw triples from the text by how often they occur, whatever heads add there, and return the share that copies
    among those that pass the same two tests, None where none pass, and how many pass. Costs the counts of ``DRAWN``
    triples: 0.4 s for 800 windows of 256 tokens."""
    if not len(at.out):
        return None, 0
    drawn = torch.randint(len(at.out), (DRAWN,), generator=torch.Generator().manual_seed(_SEED))
    triples = torch.stack([at.source[drawn], at.destination[drawn], at.out[drawn]], 1).unique(dim=0).tolist()
    found = [(s, d, o) for s, d, o in triples]
    held = [t for t, c in zip(found, counts(chooser, found), strict=True) if _beyond(c)]
    passing = [t for t, c in zip(held, counts(judge, held), strict=True) if _beyond(c)]
    return _copying(passing, words) / len(passing) if passing else None, len(passing)


def _bugs(suspects: list[Suspect], asked: list[Counts]) -> Iterator[tuple[int, Suspect, Counts]]:
    """The most expensive suspects of each head that the text holds no more often than chance, with their rank."""
    listed: dict[tuple[int, int], int] = {}
    for suspect, c in zip(suspects, asked, strict=True):
        looked, _, paid = suspect
        place = (looked.layer, looked.head)
        if c.places >= ENOUGH and c.hits <= c.expected and paid.loss_nats > 0 and listed.get(place, 0) < BUGS:
            listed[place] = listed.get(place, 0) + 1
            yield listed[place], suspect, c


def _row(data: EvalData, looked: Looked, rank: int, entry: SkipTrigram, change: float, c: Counts) -> SkipTrigramRow:
    qk_nats, ov_logit = looked.read(entry.triple)
    source, destination, out = (data.words[token] for token in entry.triple)
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


def _bug_row(data: EvalData, rank: int, looked: Looked, t: Triple, paid: SpuriousCost, c: Counts) -> SkipTrigramBugRow:
    qk_nats, ov_logit = looked.read(t)
    source, destination, out = (data.words[token] for token in t)
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


def _carried(
    trained: TracedModel, looked: Looked, shown: Int[Tensor, "some"], at: Occurrences
) -> tuple[LowRank, Float[Tensor, "n"]]:
    """The head's OV circuit as the stream has it, and what the head carries in the windows ``shown``: norms are in the
    trace's scales."""
    weights, natural = trained.model.weights(), trained.natural
    layer, h = looked.layer, looked.head
    circuit = ov_circuit(weights, weights.layers[layer][h].W_OV)
    pattern, read, final = natural.patterns[layer][shown, h], natural.scales[layer][shown], natural.scales[-1][shown]
    return circuit, source_weight(pattern, read, final, at)


def _heads(trained: TracedModel, data: EvalData) -> list[Looked]:
    w = trained.weights
    return [
        Looked(layer, h, qk_circuit(w, head.W_QK, data.unigram), ov_circuit(w, head.W_OV))
        for layer, heads in enumerate(w.layers)
        for h, head in enumerate(heads)
    ]
