"""What does a model with one head a layer do through which edge? By composition scores, and by the truth that they are
held against.

A text that asks for an edge need not get it: some models answer lookups by letting each of the two words vote, which
layer 0 can do, and adding the votes up. And models use edges that their text does not ask for.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn.functional import cross_entropy

from pathsum.circuits.composition import composition_scores
from pathsum.circuits.weights import Weights
from pathsum.config import ExtractConfig
from pathsum.extraction import framework
from pathsum.extraction.evidence import Evidence
from pathsum.model.intervene import READERS, Outcome, reading_otherwise, record, rerun
from pathsum.model.transformer import Transformer


def composed(weights: Weights, how: ExtractConfig) -> set[str]:
    """Kinds of composition whose one edge is above chance, false discoveries counted over all three."""
    generator = torch.Generator().manual_seed(0)
    rows = framework.composition_rows(composition_scores(weights.to(torch.float64), how.rotations, generator))
    return {row.kind for row in rows if row.significant}


@torch.no_grad()
def edge_costs(model: Transformer, seen: Evidence, places: Bool[Tensor, "all pos"]) -> dict[str, float]:
    """By how much does the loss at ``places`` rise when the second layer's queries, keys or values read something else
    where the first layer's head wrote? Nats by "Q", "K" and "V"; patterns are computed again, the norm keeps its scale.

    Read is the mean write, or that of another window at the same position; the cost is the smaller of the two rises, as
    each alone can do harm by being unusual. Costs one trace and seven second layers on the held-out text.
    """
    inputs, targets = seen.held_out[:, :-1], seen.held_out[:, 1:][places].long()
    clean = record(model, inputs)
    written = clean.trace.outputs[0][:, 0]
    others = (written.mean((0, 1)).expand_as(written), written.roll(1, 0))

    def loss(outcome: Outcome) -> float:
        return cross_entropy(outcome.read[places] @ model.W_U.mT, targets).item()

    def without(reader: str) -> float:
        acts = [reading_otherwise(model, clean, 1, reader, (0, 0), other)[0] for other in others]
        return min(loss(rerun(model, clean, {(1, 0): act})) for act in acts)

    whole = loss(rerun(model, clean, {}))
    return {reader: without(reader) - whole for reader in READERS}
