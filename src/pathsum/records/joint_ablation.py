"""Losses without the induction heads, over training."""

from pathsum.records.registry import record


@record(
    "joint_ablation",
    "both gains from context with all induction heads ablated, over training",
    "gain of the whole model − gain under zero, mean or resample ablation",
    "extraction/joint_ablation.py",
)
class JointAblationRow:
    """The reduction of the gains from context when several heads are ablated together at a checkpoint. Intervals: 95 %
    bootstrap."""

    step: int
    tokens_seen: int
    ablated: str  # induction (all induction heads at the end of training) | others (control: of the same layers)
    heads: str  # joined by spaces
    n_heads: int  # a control has fewer heads if its layers have too few
    method: str  # zero | mean | resample | turned (control: removes as much in random directions)
    loss_drop_nats: float  # the in-context loss drop of the whole model, on these windows
    loss_drop_lost: float  # reduction of the loss drop
    loss_drop_lost_low: float
    loss_drop_lost_high: float
    behind_nats: float  # reduction without the induction heads minus this one, same method and windows; the random
    # directions are compared with the method of the smallest reduction
    behind_low: float
    behind_high: float
    repeat_gain_nats: float  # repeated random tokens: loss on the first copy minus the second, of the whole model
    repeat_gain_lost: float
    repeat_gain_lost_low: float
    repeat_gain_lost_high: float
    windows: int  # of held-out text
