"""List the skip-trigrams with the largest effects on half of the documents, judge them on the others, and list spurious
ones (docs/framework.md §3.8 to §3.10). Without the test for chance, common outputs would exceed every skip-trigram."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.atlas import (
    Occurrences,
    SpuriousCost,
    Triple,
    effects,
    loss_reduction,
    occurrences,
    source_weight,
    spurious_cost,
    spurious_triples,
    strongest,
)
from pathsum.circuits.qk_ov import ov_circuit, qk_circuit
from pathsum.config import ExtractConfig
from pathsum.core.lowrank import LowRank
from pathsum.extraction.inputs import EvalData, TracedModel
from pathsum.records.skip_trigrams import SkipTrigramBugRow, SkipTrigramRow, SkipTrigramTallyRow, beyond_chance
from pathsum.records.tokens import word_of
from pathsum.text.lift import Counts, Text, counts

AREA = 1 << 22  # largest number of entries of a head's patterns that are examined, to bound memory and time
CANDIDATES = 300  # skip-trigrams per head, those with the largest summed effect, that are counted in the text
CROSSED = 60  # skip-trigrams per head whose spurious combinations are examined
ENOUGH = 30  # fewest places with source … destination that a spurious skip-trigram needs
DRAWN = 6000  # occurrences sampled from the text for the base rate of copying
_SEED = 2026
SUSPECTS, BUGS = 40, 3  # costliest spurious combinations per head: how many are counted in the text, and listed


@dataclass(frozen=True)
class Circuits:
    """A head with its circuits, where the norm scales each token's embedding as it does the token alone."""

    layer: int
    head: int
    qk: LowRank
    ov: LowRank

    def read(self, t: Triple) -> tuple[float, float]:
        """Return QK[destination, source] and OV[out, source] of a triple, in nats."""
        source, destination, out = t
        qk, ov = (self.qk.left[destination] @ self.qk.right[:, source], self.ov.left[out] @ self.ov.right[:, source])
        return qk.item(), ov.item()

    def columns(self, data: EvalData, rank: int, t: Triple, c: Counts) -> dict[str, Any]:
        """Return the columns that ``SkipTrigramRow`` and ``SkipTrigramBugRow`` have in common."""
        qk, ov = self.read(t)
        return {
            "layer": self.layer,
            "head": self.head,
            "rank": rank,
            "qk_nats": qk,
            "ov_logit": ov,
            **dict(zip(("source", "destination", "out"), (data.words[token] for token in t), strict=True)),
            **{f"text_{name}": getattr(c, name) for name in ("places", "hits", "expected", "lift")},
        }


Suspect = tuple[Circuits, Triple, SpuriousCost]


def tables(trained: TracedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``skip_trigrams``, ``skip_trigram_tallies`` and ``skip_trigram_bugs``."""
    rows: list[SkipTrigramRow] = []
    suspects: list[Suspect] = []
    tallies: list[SkipTrigramTallyRow] = []
    document = data.documents.unique(return_inverse=True)[1]
    judging = (document - document[0]) % 2 == 1  # every second document; the document of the first window chooses
    chooser, judge = (Text.of(data.held_out[half]) for half in (~judging, judging))
    shown = (~judging[: len(data.windows)]).nonzero().squeeze(-1)[: max(1, AREA // (data.windows.shape[1] - 1) ** 2)]
    if trained.weights.layers:
        at, log_probs = occurrences(data.windows[shown]), trained.natural.logits[shown].log_softmax(-1)
        words = same_words(data.words)
        base = _base_rate(at, words, chooser, judge)
    w = trained.weights
    for layer, h in trained.places:
        head = w.layers[layer][h]
        circuits = Circuits(layer, h, qk_circuit(w, head.W_QK, data.unigram), ov_circuit(w, head.W_OV))
        circuit, weight = _carried(trained, layer, h, shown, at)
        found = strongest(effects(circuit, weight, at), at, max(CANDIDATES, CROSSED, config.top_k))
        triples = [entry.triple for entry in found]
        before, judged = counts(chooser, triples), counts(judge, triples)
        tallies.append(_tally(circuits, triples, before, judged, words, base))
        chosen = [(entry, c) for entry, b, c in zip(found, before, judged, strict=True) if _beyond(b)]
        for rank, (entry, c) in enumerate(chosen[: config.top_k], start=1):
            rows.append(
                SkipTrigramRow(
                    **circuits.columns(data, rank, entry.triple, c),
                    places=entry.places,
                    effect_logits=entry.total / entry.places,
                    change_nats=loss_reduction(circuit, log_probs, weight, at, entry.triple),
                )
            )
        costly = [
            (circuits, t, spurious_cost(circuit, log_probs, weight, at, t))
            for t in spurious_triples(triples[:CROSSED])
            if min(circuits.read(t)) > 0
        ]
        suspects += sorted(costly, key=lambda s: (-s[2].places * s[2].loss_nats, s[1]))[:SUSPECTS]
    suspect_counts = counts(judge, [s[1] for s in suspects])
    bugs = [
        SkipTrigramBugRow(
            **circuits.columns(data, rank, t, c),
            places=cost.places,
            price_nats=cost.loss_nats,
            balance_nats=cost.balance_nats,
        )
        for rank, (circuits, t, cost), c in _bugs(suspects, suspect_counts)
    ]
    return {"skip_trigrams": rows, "skip_trigram_tallies": tallies, "skip_trigram_bugs": bugs}


def same_words(words: Sequence[str]) -> Int[Tensor, "vocab"]:
    """Give each token a number, the same for tokens of the same word."""
    numbers: dict[str, int] = {}
    return torch.tensor([numbers.setdefault(word_of(w), len(numbers)) for w in words])


def _beyond(c: Counts) -> bool:
    return beyond_chance(c.hits, c.expected, c.lift)


def _tally(
    circuits: Circuits,
    triples: Sequence[Triple],
    before: Sequence[Counts],
    judged: Sequence[Counts],
    words: Int[Tensor, "vocab"],
    base: tuple[float | None, int],
) -> SkipTrigramTallyRow:
    passing = [t for t, b, c in zip(triples, before, judged, strict=True) if _beyond(b) and _beyond(c)]
    return SkipTrigramTallyRow(
        layer=circuits.layer,
        head=circuits.head,
        candidates=len(triples),
        copying=_copying(triples, words),
        tested=sum(c.lift is not None for c in judged),
        confirmed=sum(map(_beyond, judged)),
        passing=len(passing),
        passing_copying=_copying(passing, words),
        base_rate=base[0],
        base_passing=base[1],
    )


def _copying(triples: Sequence[Triple], words: Int[Tensor, "vocab"]) -> int:
    """Count the triples whose output equals their source up to case and a leading space."""
    return sum(int(words[source] == words[out]) for source, _, out in triples)


def _base_rate(at: Occurrences, words: Int[Tensor, "vocab"], chooser: Text, judge: Text) -> tuple[float | None, int]:
    """Return the share of copying among sampled triples that pass both tests, and the number of these triples."""
    if not len(at.out):
        return None, 0
    drawn = torch.randint(len(at.out), (DRAWN,), generator=torch.Generator().manual_seed(_SEED))
    triples = torch.stack([at.source[drawn], at.destination[drawn], at.out[drawn]], 1).unique(dim=0).tolist()
    found = [(s, d, o) for s, d, o in triples]
    held = [t for t, c in zip(found, counts(chooser, found), strict=True) if _beyond(c)]
    passing = [t for t, c in zip(held, counts(judge, held), strict=True) if _beyond(c)]
    return _copying(passing, words) / len(passing) if passing else None, len(passing)


def _bugs(suspects: list[Suspect], suspect_counts: list[Counts]) -> Iterator[tuple[int, Suspect, Counts]]:
    """Yield the skip-trigram bugs of each head, at most ``BUGS``, each with its rank and counts."""
    listed: Counter[tuple[int, int]] = Counter()
    for (circuits, t, cost), c in zip(suspects, suspect_counts, strict=True):
        place = (circuits.layer, circuits.head)
        if c.places >= ENOUGH and c.hits <= c.expected and cost.loss_nats > 0 and listed[place] < BUGS:
            listed[place] += 1
            yield listed[place], (circuits, t, cost), c


def _carried(
    trained: TracedModel, layer: int, h: int, shown: Int[Tensor, "some"], at: Occurrences
) -> tuple[LowRank, Float[Tensor, "n"]]:
    """Return the head's OV circuit from unscaled embeddings, and the ``source_weight`` of each occurrence."""
    weights, natural = trained.model.weights(), trained.natural
    circuit = ov_circuit(weights, weights.layers[layer][h].W_OV)
    pattern, read, final = natural.patterns[layer][shown, h], natural.scales[layer][shown], natural.scales[-1][shown]
    return circuit, source_weight(pattern, read, final, at)
