"""Loss after each layer."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record("lens", "loss after each layer", "W_U of the residual stream there", "circuits/logit_lens.py")
@dataclass(frozen=True)
class LensRow:
    """The held-out loss if the residual stream is unembedded after this many layers; 95 % bootstrap over documents."""

    layers: int  # from 0: the embedding alone
    loss_nats: float
    low: float
    high: float
