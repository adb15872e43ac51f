"""The detectors of skip-trigrams: those of the atlas, and those that the model alone shows, without statistics of the
text."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.calibration.detectors import Unit, compared
from pathsum.calibration.world import PlantedModel
from pathsum.circuits.atlas import Triple, effects, occurrences, source_weight, strongest, worth
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.core.lowrank import LowRank
from pathsum.extraction import atlas
from pathsum.model.transformer import Transformer

CANDIDATES = 100  # of a head, with the largest effect on the documents that choose
PLACES = 5  # on the documents that judge; a mean over fewer is too uncertain
WORTH_NATS = 0.5  # the smallest loss reduction, on the documents that judge


def skip_trigrams(planted: PlantedModel) -> Iterator[Unit]:
    """Compare the planted triples with those of the atlas that held-out text confirms."""
    if triples := _triples(planted):
        rows = atlas.tables(planted.trained, planted.data, planted.config)["skip_trigrams"]
        words = planted.world.words
        named = {(words[s], words[d], words[o]) for s, d, o in triples}
        yield from compared(named, {(r.source, r.destination, r.out) for r in rows if r.borne_out})


def skip_trigrams_of_model(planted: PlantedModel) -> Iterator[Unit]:
    """Compare the planted triples with those on which the model's loss depends."""
    if triples := _triples(planted):
        yield from compared(triples, found_by_model(planted.trained.model, planted.world.held_out))


@torch.no_grad()
def found_by_model(model: Transformer, windows: Int[Tensor, "all window"]) -> set[Triple]:
    """Return triples whose source raises log P(out) by ``WORTH_NATS`` or more through a head of the first layer: a mean
    over at least ``PLACES`` places of every second window. The candidates have the largest effect on the other windows.
    Costs two traces."""
    chosen, judged = _Places(model, windows[::2]), _Places(model, windows[1::2])
    found: set[Triple] = set()
    for head in range(model.config.n_heads):
        candidates = strongest(effects(*chosen.circuit(head), chosen.at), chosen.at, CANDIDATES)
        circuit, weight = judged.circuit(head)
        for triple in (candidate.triple for candidate in candidates):
            here = judged.at.slice(*triple)
            if here.stop - here.start >= PLACES:
                nats = worth(circuit, judged.log_probs, weight, judged.at, triple)
                found |= {triple} if nats >= WORTH_NATS else set()
    return found


class _Places:
    """Windows, and the model's trace on them."""

    def __init__(self, model: Transformer, windows: Int[Tensor, "some window"]) -> None:
        self.weights, self.at, self.trace = model.weights(), occurrences(windows), model.trace(windows[:, :-1])
        self.log_probs = self.trace.logits.log_softmax(-1)

    def circuit(self, head: int) -> tuple[LowRank, Float[Tensor, "n"]]:
        """Return the head's OV circuit, and the weight at which it copies each source."""
        trace = self.trace
        weight = source_weight(trace.patterns[0][:, head], trace.scales[0], trace.scales[-1], self.at)
        return ov_circuit(self.weights, self.weights.layers[0][head].W_OV), weight


def _triples(planted: PlantedModel) -> set[Triple]:
    """Return the planted skip-trigrams as tokens, where there is a head to learn them."""
    truth = planted.world.truth
    triples = zip(truth.skip_sources, truth.skip_destinations, truth.skip_outs, strict=True)
    return {(s + 1, d + 1, o + 1) for s, d, o in triples} if planted.trained.weights.layers else set()


DETECTORS = {"skip_trigram": skip_trigrams, "skip_trigram_model": skip_trigrams_of_model}
