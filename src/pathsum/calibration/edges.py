"""Does a model with one head a layer do by an edge what it has learnt? The truth that composition is held against.

A text that asks for an edge need not get it: some models answer lookups by letting each of the two words vote, which
layer 0 can do, and adding the votes up.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn.functional import cross_entropy

from pathsum.extraction.evidence import Evidence
from pathsum.model.intervene import READERS, Outcome, reading_otherwise, record, rerun
from pathsum.model.transformer import Transformer


@torch.no_grad()
def costs(model: Transformer, seen: Evidence, places: Bool[Tensor, "all pos"]) -> dict[str, float]:
    """By how much does the loss at ``places`` rise when the second layer's queries, keys or values read the mean write
    of the first layer's head? Nats by "Q", "K" and "V". Costs four runs of two layers on the held-out text."""
    inputs, targets = seen.held_out[:, :-1], seen.held_out[:, 1:][places].long()
    clean = record(model, inputs)

    def loss(outcome: Outcome) -> float:
        return cross_entropy(outcome.read[places] @ model.W_U.mT, targets).item()

    written = clean.trace.outputs[0][:, 0]
    mean = written.mean((0, 1)).expand_as(written)
    cut = {r: reading_otherwise(model, clean, 1, r, (0, 0), mean)[0] for r in READERS}
    whole = loss(rerun(model, clean, {}))
    return {reader: loss(rerun(model, clean, {(1, 0): act})) - whole for reader, act in cut.items()}
