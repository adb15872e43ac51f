"""Sufficiency of the induction circuit: previous-token head, K-edge and induction head (docs/framework.md §5.10)."""

from pathsum.records.registry import record


@record(
    "sufficiency",
    "prefix matching and second-copy gain of the induction circuit alone",
    "value with everything but the circuit resampled / value of the whole model",
    "extraction/sufficiency.py",
)
class SufficiencyRow:
    """Induction on repeated random tokens with one K-edge kept, or none. All heads except the induction head are
    resampled. Everything that the induction head reads is resampled too, except the kept K-edge and the embedding at
    its queries and values. Intervals: 95 % bootstrap over windows."""

    kept: str  # K-edge that is kept: circuit (from the previous-token head) | another head (control) | nothing
    early_head: int | None  # first-layer head of the kept edge; None if no edge is kept
    layer: int  # of the induction head
    head: int
    prefix_matching: float  # of the induction head, 0..1
    matching_share: float  # prefix_matching / prefix matching in the whole model
    matching_low: float
    matching_high: float
    repeat_gain_nats: float  # loss on the first copy − loss on the second copy
    gain_share: float  # repeat_gain_nats / gain of the whole model
    gain_low: float
    gain_high: float
    windows: int
