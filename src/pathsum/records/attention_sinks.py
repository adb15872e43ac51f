"""Attention to the first token, and its effect on the loss."""

from pathsum.records.registry import record


@record(
    "attention_sinks",
    "attention on the first token, and the loss without it",
    "mean A[i, 0]; loss with A[·, 0] = 0, the rest unchanged or scaled to sum to 1 − loss without intervention",
    "behaviour/attention_sinks.py",
)
class AttentionSinkRow:
    """A head's attention to the first token of held-out windows (attention sink), and the rise of the loss without it,
    in nats per token. Intervals: 95 % bootstrap."""

    layer: int
    head: int | None  # None: all heads of the layer together
    attention: float  # mean attention to the first token over queries from the second, 0..1
    attention_low: float
    attention_high: float
    chance: float  # of uniform causal attention
    silenced_nats: float  # no attention to the first token, the rest unchanged
    silenced_low: float
    silenced_high: float
    forbidden_nats: float  # no attention to the first token, the rest scaled
    forbidden_low: float
    forbidden_high: float
    control_nats: float  # no attention to the second token of the window, the rest scaled
    control_low: float
    control_high: float
    windows: int
