"""Measure copying on held-out text (docs/framework.md §3.18)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.copying import attended_logits, own_entries, removal_rises
from pathsum.config import ExtractConfig
from pathsum.core.weights import Weights
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.model.transformer import Trace
from pathsum.records.heads import CopyingRow
from pathsum.records.registry import intervals
from pathsum.statistics.bootstrap import mean_intervals

CHUNK = 8  # windows in memory at the same time
_SEED = 2026


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``copying``, one row per head."""
    natural, weights, rows = trained.natural, trained.model.weights(), []
    generator, tokens = torch.Generator().manual_seed(_SEED), data.windows[:, :-1]
    unit = natural.scales[-1].mean()  # one number, because the scale of a query depends on what was attended to
    for layer, patterns in enumerate(natural.patterns):
        removed = removals(weights, natural, layer, data)
        for head, rises in enumerate(removed):
            output = natural.outputs[layer][:, head]
            attended, spread = attended_logits(patterns[:, head], output, tokens, weights.W_U)
            values = torch.stack([unit * attended, rises])
            a, b = mean_intervals(values, data.window_documents, generator)
            rows.append(
                CopyingRow(
                    layer=layer,
                    head=head,
                    spread_nats=unit.item() * spread,
                    **intervals(attended_nats=a, removal_nats=b),
                    windows=len(tokens),
                )
            )
    return {"copying": rows}


def removals(weights: Weights, trace: Trace, layer: int, data: EvalData) -> Float[Tensor, "head batch"]:
    """Return the rise of the loss, in nats per token, without the own OV entry of each attended token but BOS."""
    own, found = torch.stack([own_entries(weights, head) for head in weights.layers[layer]]), []
    tensors = (data.windows, trace.patterns[layer], trace.scales[layer], trace.scales[-1], trace.logits)
    for windows, pattern, before, after, logits in zip(*(tensor.split(CHUNK) for tensor in tensors), strict=True):
        keys, targets = windows[:, :-1], windows[:, 1:]
        entries = own[:, keys].transpose(0, 1) * before[:, None]
        entries[..., 0] = 0
        moved = pattern * entries[:, :, None] * after[:, None, :, None]
        found.append(removal_rises(moved, keys, targets, logits).mean(-1))
    return torch.cat(found).mT
