"""Worth of paths at frozen norm scales and at their own."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "norm_scales",
    "worth of each path at frozen norm scales and at its own",
    "L(direct + own heads) − L(direct + own heads + path)",
    "extraction/norm_scales.py",
)
@dataclass(frozen=True)
class NormScaleRow:
    """A path's worth on held-out windows when it joins the direct path and its own heads' single paths: fall of the
    loss, nats per token, patterns frozen. Intervals: 95 % bootstrap."""

    path: str
    order: int  # heads on it
    frozen_nats: float  # with the whole model's norm scales
    frozen_low: float
    frozen_high: float
    own_nats: float  # norms see these paths alone
    own_low: float
    own_high: float
    difference_nats: float  # own − frozen
    difference_low: float
    difference_high: float
    frozen_control_nats: float  # as much written in random directions
    own_control_nats: float
    windows: int
