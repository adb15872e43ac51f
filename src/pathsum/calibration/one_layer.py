"""Skip-trigrams: those of the atlas, and those that the model itself shows without a word from the text."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.calibration.units import Detector, Unit, compared
from pathsum.calibration.world import PlantedModel
from pathsum.circuits.atlas import Triple, effects, occurrences, source_weight, strongest, worth
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.core.lowrank import LowRank
from pathsum.extraction import atlas
from pathsum.model.transformer import Transformer

CANDIDATES = 100  # of a head, with the largest effect on the documents that choose
PLACES = 5  # on the documents that judge, under which a mean says little
WORTH_NATS = 0.5  # that log P(out) must fall by without the source, on the documents that judge


def skip_trigrams(planted: PlantedModel) -> Iterator[Unit]:
    """The planted triples, and those of the atlas that the held-out text bears out."""
    if triples := _triples(planted):
        rows = atlas.tables(planted.trained, planted.data, planted.config)["skip_trigrams"]
        words = planted.world.words
        named = {(words[s], words[d], words[o]) for s, d, o in triples}
        yield from compared(named, {(r.source, r.destination, r.out) for r in rows if r.borne_out})


def skip_trigrams_of_model(planted: PlantedModel) -> Iterator[Unit]:
    """The planted triples, and those that the model's heads are worth something by, whatever the text says."""
    if triples := _triples(planted):
        yield from compared(triples, found_by_model(planted.trained.model, planted.world.held_out))


@torch.no_grad()
def found_by_model(model: Transformer, windows: Int[Tensor, "all window"]) -> set[Triple]:
    """Triples whose out the heads of the first layer make likelier by ``WORTH_NATS`` or more, a mean over the places
    of every second window, at least ``PLACES`` of them; those of largest effect on the other windows are tried. Costs
    two traces."""
    chosen, judged = _Places(model, windows[::2]), _Places(model, windows[1::2])
    found: set[Triple] = set()
    for head in range(model.config.n_heads):
        circuit, weight = chosen.circuit(head)
        candidates = strongest(effects(circuit, weight, chosen.at), chosen.at, CANDIDATES)
        circuit, weight = judged.circuit(head)
        for triple in (candidate.triple for candidate in candidates):
            here = judged.at.slice(*triple)
            if here.stop - here.start >= PLACES:
                nats = worth(circuit, judged.log_probs, weight, judged.at, triple)
                found |= {triple} if nats >= WORTH_NATS else set()
    return found


class _Places:
    """Some windows, and what the model makes of them."""

    def __init__(self, model: Transformer, windows: Int[Tensor, "some window"]) -> None:
        self.weights, self.at, self.trace = model.weights(), occurrences(windows), model.trace(windows[:, :-1])
        self.log_probs = self.trace.logits.log_softmax(-1)

    def circuit(self, head: int) -> tuple[LowRank, Float[Tensor, "n"]]:
        """The head's OV circuit, and how much of each source it carries."""
        trace = self.trace
        pattern, read, final = trace.patterns[0][:, head], trace.scales[0], trace.scales[-1]
        return ov_circuit(self.weights, self.weights.layers[0][head].W_OV), source_weight(pattern, read, final, self.at)


def _triples(planted: PlantedModel) -> set[tuple[int, int, int]]:
    """Planted skip-trigrams as tokens, where there is a head to learn them."""
    truth = planted.world.truth
    triples = zip(truth.skip_sources, truth.skip_destinations, truth.skip_outs, strict=True)
    return {(s + 1, d + 1, o + 1) for s, d, o in triples} if planted.trained.weights.layers else set()


DETECTORS: dict[str, Detector] = {
    "skip_trigram": skip_trigrams,
    "skip_trigram_model": skip_trigrams_of_model,
}
