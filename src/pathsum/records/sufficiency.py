"""The induction circuit without the rest of the model."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "sufficiency",
    "prefix matching and second-copy gain of the circuit alone",
    "of the circuit with all else resampled / of the whole model",
    "extraction/sufficiency.py",
)
@dataclass(frozen=True)
class SufficiencyRow:
    """Induction with everything but one key edge and its late head resampled; repeated random
    tokens. Intervals: 95 % bootstrap over windows."""

    kept: str  # circuit (the edge comes from the previous-token head) | another head | nothing (controls)
    early_head: int | None  # of the first layer; None where no edge is kept
    layer: int  # of the induction head
    head: int
    prefix_matching: float  # of the induction head, 0..1
    matching_share: float  # of the whole model's
    matching_low: float
    matching_high: float
    repeat_gain_nats: float  # loss on the first copy minus the second
    gain_share: float  # of the whole model's
    gain_low: float
    gain_high: float
    windows: int
