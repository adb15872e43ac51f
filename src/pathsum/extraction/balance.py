"""Measure the shares of the embedding and of the writes of layers and heads in the residual stream
(docs/framework.md §7.3).
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from pathsum.circuits.balance import power_share, projection_share, rms_norm
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.records.weights_side import BalanceRow


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``balance``: for each layer and for the unembedding, one row for each part of the stream that
    it reads."""
    model, trace = trained.model, trained.natural
    embedded = model.embed(data.windows[:, :-1])
    streams = itertools.accumulate((output.sum(1) for output in trace.outputs), initial=embedded)
    rows = []
    for reader, (stream, scale) in enumerate(zip(streams, trace.scales, strict=True)):
        x = _read(trained, stream)
        for name, part in _parts(embedded, trace.outputs[:reader]):
            shares = (share(_read(trained, part), x, scale) for share in (power_share, projection_share))
            rows.append(BalanceRow(reader, name, rms_norm(part), *shares))
    return {"balance": rows}


def _parts(embedded: Tensor, outputs: tuple[Tensor, ...]) -> list[tuple[str, Tensor]]:
    """Return the embedding, the writes of each layer and the writes of each head, with their names."""
    layers = [(f"L{layer}", output.sum(1)) for layer, output in enumerate(outputs)]
    heads = [(f"L{n}H{h}", part) for n, output in enumerate(outputs) for h, part in enumerate(output.unbind(1))]
    return [("embedding", embedded), *layers, *heads]


def _read(trained: TrainedModel, part: Tensor) -> Tensor:
    """Return a part of the stream as a layer reads it, before the norm scale is applied: centered over coordinates if
    the norm is ``layer``, else unchanged."""
    return part - part.mean(-1, keepdim=True) if trained.model.config.norm == "layer" else part
