"""Find skip-trigrams by how the model's log P(output) changes, without a test of their lift in the text."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.atlas import Triple, effects, loss_reduction, occurrences, source_weight, strongest
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.core.lowrank import LowRank
from pathsum.model.transformer import Transformer

CANDIDATES = 100  # triples per head: those with the largest effect in the windows that choose
PLACES = 5  # smallest number of places in the windows that judge
CHANGE_NATS = 0.5  # smallest rise of log P(out) in the windows that judge


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
        """Return a first-layer head's OV circuit, and its weight on each occurrence (docs/framework.md §3.8)."""
        trace = self.trace
        weight = source_weight(trace.patterns[0][:, head], trace.scales[0], trace.scales[-1], self.at)
        return ov_circuit(self.weights, self.weights.layers[0][head].W_OV), weight
