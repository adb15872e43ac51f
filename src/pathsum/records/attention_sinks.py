"""Attention to the first token, and its effect on the loss."""

from pathsum.records.registry import record


@record(
    "attention_sinks",
    "attention to the first token, and the rise of the loss without this attention",
    "mean A[i, 0]; loss with A[·, 0] = 0 − loss without intervention; other attention unchanged or scaled to sum to 1",
    "behavior/attention_sinks.py",
)
class AttentionSinkRow:
    """The attention of a head to the first token of held-out windows (attention sink), and the rise of the loss without
    this attention, in nats per token over every second position (docs/framework.md §5.15). Intervals: 95 % bootstrap
    over documents."""

    layer: int
    head: int | None  # None: all heads of the layer together
    attention: float  # mean attention to the first token over all later queries, 0..1
    attention_low: float
    attention_high: float
    chance: float  # the same mean under uniform causal attention
    silenced_nats: float  # rise of the loss with A[q, 0] = 0 and other attention unchanged
    silenced_low: float
    silenced_high: float
    forbidden_nats: float  # rise of the loss with A[q, 0] = 0 and other attention scaled to sum to 1
    forbidden_low: float
    forbidden_high: float
    control_nats: float  # as forbidden_nats, with key 1 in place of key 0
    control_low: float
    control_high: float
    windows: int
