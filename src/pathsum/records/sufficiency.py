"""Sufficiency of the induction circuit."""

from pathsum.records.registry import record


@record(
    "sufficiency",
    "prefix matching and second-copy gain of the circuit alone",
    "value of the circuit with all else resampled / value of the whole model",
    "extraction/sufficiency.py",
)
class SufficiencyRow:
    """Induction on repeated random tokens with everything but one key edge and its late head resampled. Intervals: 95 %
    bootstrap over windows."""

    kept: str  # circuit (the edge from the previous-token head) | another head (control) | nothing (control)
    early_head: int | None  # of the first layer; None if no edge is kept
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
