"""Losses without any induction head, through training."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "joint_ablation",
    "both gains from context without all induction heads, through training",
    "gain with the heads − gain with zeros, a mean or another window's writes in their place",
    "extraction/joint_ablation.py",
)
@dataclass(frozen=True)
class JointAblationRow:
    """The loss of gains when several heads are ablated together at a checkpoint. Intervals: 95 % bootstrap."""

    step: int
    tokens_seen: int
    ablated: str  # induction (all heads that match prefixes at the end) | others (control: of the same layers)
    heads: str  # joined by spaces
    n_heads: int  # how many; of a control fewer than induction heads where the layers have too few others
    method: str  # zero | mean | resample | turned (control: as much is taken away in random directions)
    loss_drop_nats: float  # the in-context loss drop of the whole model, on these windows
    loss_drop_lost: float  # with the heads minus without
    loss_drop_lost_low: float
    loss_drop_lost_high: float
    behind_nats: float  # how much more is lost without the induction heads by the same method, on the same windows;
    # random directions are compared with the method by which the induction heads lose least
    behind_low: float
    behind_high: float
    repeat_gain_nats: float  # repeated random tokens: loss on the first copy minus the second, of the whole model
    repeat_gain_lost: float
    repeat_gain_lost_low: float
    repeat_gain_lost_high: float
    windows: int  # of held-out text
