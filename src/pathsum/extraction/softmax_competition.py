"""Measure each head's preference for the match of a repeated token, the token after it and the token before it
(docs/framework.md §5.14).
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pathsum.behaviour.softmax_competition import LEAST_BLOCK, inhibition, preference
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.records.softmax_competition import SoftmaxCompetitionRow
from pathsum.statistics.bootstrap import independent, mean_intervals

OFFSETS = {"match": 0, "after": 1, "before": -1}
RAISED = 1.0  # nats by which the score of each query's strongest key is raised
_SEED = 2025


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``softmax_competition``: one row per head and key (match, after, before).

    Preferences are those on repeated windows minus those on control windows (``unrepeated``). No rows if blocks are
    shorter than ``LEAST_BLOCK`` (11). Costs one trace of the control windows: 0.1 s per layer."""
    block, generator = trained.block, torch.Generator().manual_seed(_SEED)
    if block < LEAST_BLOCK:
        return {"softmax_competition": []}
    control = trained.model.trace(unrepeated(trained.repeated_tokens, block)).patterns
    rows: list[SoftmaxCompetitionRow] = []
    for layer, (pattern, other) in enumerate(zip(trained.repeated.patterns, control, strict=True)):
        matched = pattern[:, :, block + 1 :, 1:].diagonal(0, -2, -1).mean((0, -1)).tolist()  # A[p, p − block]
        lowered = inhibition(pattern[:, :, block + 1 :].amax(-1), RAISED).mean((0, -1)).tolist()
        for place, offset in OFFSETS.items():
            values = preference(pattern, block, offset) - preference(other, block, offset)
            found = mean_intervals(values, independent(values), generator)
            rows += [
                SoftmaxCompetitionRow(layer, h, place, *i, a, n, len(pattern))
                for h, (i, a, n) in enumerate(zip(found, matched, lowered, strict=True))
            ]
    return {"softmax_competition": rows}


def unrepeated(tokens: Int[Tensor, "batch pos"], block: int) -> Int[Tensor, "batch pos"]:
    """Replace the second copy of each window by that of another window, whose tokens occur in the first copy only by
    chance. A single window stays unchanged."""
    return torch.cat([tokens[:, : block + 1], tokens[:, block + 1 :].roll(1, 0)], 1)
