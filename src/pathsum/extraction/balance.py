"""How the residual stream is balanced between the embedding and what each layer writes."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from pathsum.circuits.balance import power_share, projection_share, rms_norm
from pathsum.config import ExtractConfig
from pathsum.extraction.evidence import Evidence, Subject
from pathsum.records.balance import BalanceRow


@torch.no_grad()
def tables(subject: Subject, seen: Evidence, how: ExtractConfig) -> dict[str, list[Any]]:
    """By field of ``Cell``; a row for each reader and each part of what it reads."""
    model, trace = subject.model, subject.natural
    embedded = model.embed(seen.windows[:, :-1])
    streams = itertools.accumulate((output.sum(1) for output in trace.outputs), initial=embedded)
    rows = []
    for reader, (stream, scale) in enumerate(zip(streams, trace.scales, strict=True)):
        x = _read(subject, stream)
        for name, part in _parts(embedded, trace.outputs[:reader]):
            shares = (share(_read(subject, part), x, scale) for share in (power_share, projection_share))
            rows.append(BalanceRow(reader, name, rms_norm(part), *shares))
    return {"balance": rows}


def _parts(embedded: Tensor, outputs: tuple[Tensor, ...]) -> list[tuple[str, Tensor]]:
    """The embedding, each layer's writes and each head's."""
    layers = [(f"L{layer}", output.sum(1)) for layer, output in enumerate(outputs)]
    heads = [(f"L{n}H{h}", part) for n, output in enumerate(outputs) for h, part in enumerate(output.unbind(1))]
    return [("embedding", embedded), *layers, *heads]


def _read(subject: Subject, part: Tensor) -> Tensor:
    """What a norm leaves of a part, but for its scale."""
    return part - part.mean(-1, keepdim=True) if subject.model.config.norm == "layer" else part
