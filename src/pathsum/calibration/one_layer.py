"""Two detectors of skip-trigrams: the atlas, which also tests the lift in the text, and one that tests only how the
model's log P(output) changes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.calibration.detectors import Unit, compared
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.circuits.atlas import Triple, effects, loss_reduction, occurrences, source_weight, strongest
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.core.lowrank import LowRank
from pathsum.extraction import atlas
from pathsum.model.transformer import Transformer

CANDIDATES = 100  # triples per head: those with the largest effect in the windows that choose
PLACES = 5  # smallest number of places in the windows that judge
CHANGE_NATS = 0.5  # smallest rise of log P(out) in the windows that judge


def skip_trigrams(model: SyntheticModel) -> Iterator[Unit]:
    """Compare the skip-trigrams of the text's rules with those that the atlas lists and the judging documents
    confirm. No units without heads, or if the text has no skip-trigrams."""
    if triples := _triples(model):
        rows = atlas.tables(model.trained, model.data, model.config)["skip_trigrams"]
        words = model.text.words
        named = {(words[s], words[d], words[o]) for s, d, o in triples}
        yield from compared(named, {(r.source, r.destination, r.out) for r in rows if r.confirmed})


def skip_trigrams_of_model(model: SyntheticModel) -> Iterator[Unit]:
    """Compare the skip-trigrams of the text's rules with those of ``found_by_model``."""
    if triples := _triples(model):
        yield from compared(triples, found_by_model(model.trained.model, model.text.held_out))


@torch.no_grad()
def found_by_model(model: Transformer, windows: Int[Tensor, "all window"]) -> set[Triple]:
    """Return the triples whose source raises log P(out) by at least ``CHANGE_NATS`` through a first-layer head."""
    chosen, judged = _Places(model, windows[::2]), _Places(model, windows[1::2])
    found: set[Triple] = set()
    for head in range(model.config.n_heads):
        candidates = strongest(effects(*chosen.circuit(head), chosen.at), chosen.at, CANDIDATES)
        circuit, weight = judged.circuit(head)
        for triple in (candidate.triple for candidate in candidates):
            here = judged.at.slice(*triple)
            if here.stop - here.start >= PLACES:
                nats = loss_reduction(circuit, judged.log_probs, weight, judged.at, triple)
                found |= {triple} if nats >= CHANGE_NATS else set()
    return found


class _Places:
    """The places of skip-trigrams in some windows, with the model's trace on these windows."""

    def __init__(self, model: Transformer, windows: Int[Tensor, "some window"]) -> None:
        self.weights, self.at, self.trace = model.weights(), occurrences(windows), model.trace(windows[:, :-1])
        self.log_probs = self.trace.logits.log_softmax(-1)

    def circuit(self, head: int) -> tuple[LowRank, Float[Tensor, "n"]]:
        """Return the OV (output-value) circuit of a first-layer head, and for each occurrence the weight with which the
        head moves the source to the destination (``carried`` in docs/framework.md §3.8)."""
        trace = self.trace
        weight = source_weight(trace.patterns[0][:, head], trace.scales[0], trace.scales[-1], self.at)
        return ov_circuit(self.weights, self.weights.layers[0][head].W_OV), weight


def _triples(model: SyntheticModel) -> set[Triple]:
    """Return the skip-trigrams of the text's rules as tokens, or none for a model without heads."""
    truth = model.text.truth
    triples = zip(truth.skip_sources, truth.skip_destinations, truth.skip_outs, strict=True)
    return {(s + 1, d + 1, o + 1) for s, d, o in triples} if model.trained.weights.layers else set()


DETECTORS = {"skip_trigram": skip_trigrams, "skip_trigram_model": skip_trigrams_of_model}
