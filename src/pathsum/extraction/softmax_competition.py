"""Measure each head's preference for the match of a repeated token and its neighbors (docs/framework.md §5.14)."""

import copy
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.softmax_competition import LEAST_BLOCK, inhibition, preference
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.model.transformer import Transformer
from pathsum.records.heads import SoftmaxCompetitionRow
from pathsum.records.registry import intervals
from pathsum.statistics.bootstrap import independent, mean_intervals

OFFSETS = {"match": 0, "after": 1, "before": -1}
ONE_LAYER_SETS = 8  # sets of repeated windows in a model of one layer, of which the claim needs narrow intervals
RAISED = 1.0  # nats by which the score of each query's strongest key is raised
_SEED = 2025


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``softmax_competition``: one row per head and key (match, after, before)."""
    block, generator = trained.block, torch.Generator().manual_seed(_SEED)
    if block < LEAST_BLOCK:
        return {"softmax_competition": []}
    sets = ONE_LAYER_SETS if trained.cell.model.n_layers == 1 else 1
    n, n_ctx = config.repeated_windows, trained.cell.model.n_ctx
    more = [data.repeats(n, n_ctx, generator) for _ in range(sets - 1)]
    precise = copy.deepcopy(trained.model).double()
    found = [_preferences(precise, tokens, block) for tokens in (trained.repeated_tokens, *more)]
    rows: list[SoftmaxCompetitionRow] = []
    for layer, pattern in enumerate(trained.repeated.patterns):
        matched = pattern[:, :, block + 1 :, 1:].diagonal(0, -2, -1).mean((0, -1)).tolist()  # A[p, p − block]
        lowered = inhibition(pattern[:, :, block + 1 :].amax(-1), RAISED).mean((0, -1)).tolist()
        for place in OFFSETS:
            values = torch.cat([layers[layer][place] for layers in found], -1)
            rows += [
                SoftmaxCompetitionRow(
                    layer=layer,
                    head=h,
                    place=place,
                    **intervals(preference_nats=interval),
                    match_attention=matched[h],
                    inhibition_nats=lowered[h],
                    windows=values.shape[-1],
                )
                for h, interval in enumerate(mean_intervals(values, independent(values), generator))
            ]
    return {"softmax_competition": rows}


def _preferences(
    model: Transformer, tokens: Int[Tensor, "batch pos"], block: int
) -> list[dict[str, Float[Tensor, "head batch"]]]:
    """Return, for each layer and key, the heads' preferences on ``tokens`` minus those on ``unrepeated`` tokens."""
    pairs = zip(model.trace(tokens).patterns, model.trace(unrepeated(tokens, block)).patterns, strict=True)
    return [
        {place: preference(own, block, offset) - preference(other, block, offset) for place, offset in OFFSETS.items()}
        for own, other in pairs
    ]


def unrepeated(tokens: Int[Tensor, "batch pos"], block: int) -> Int[Tensor, "batch pos"]:
    """Replace the second copy of each window by that of another window; a single window stays."""
    return torch.cat([tokens[:, : block + 1], tokens[:, block + 1 :].roll(1, 0)], 1)
