"""Reduction of in-context learning when all induction heads are ablated together, during training."""

from pathsum.records.registry import record

INDUCTION, OTHERS = "induction", "others"  # kinds of ablated heads


@record(
    "joint_ablation",
    "parts of the loss drop and of the second-copy gain that are lost with all induction heads ablated, at checkpoints",
    "value of the whole model − value under zero, mean or resample ablation",
    "extraction/joint_ablation.py",
)
class JointAblationRow:
    """The parts of the in-context loss drop and of the second-copy gain that are lost when several heads are ablated
    together at one checkpoint (docs/framework.md §5.11), in nats per token. Intervals: 95 % bootstrap."""

    step: int
    tokens_seen: int
    ablated: str  # induction: all induction heads at the end of training | others: control, heads of the same layers
    heads: str  # joined by spaces
    n_heads: int  # number of ablated heads; smaller for a control if its layers have too few other heads
    method: str  # zero | mean | resample | rotated (control: a write of equal norm is removed in random directions)
    loss_drop_nats: float  # in-context loss drop of the whole model minus that of the bigram model on these windows
    loss_drop_lost: float  # part of it that is lost, in nats
    loss_drop_lost_low: float
    loss_drop_lost_high: float
    share: float | None  # loss_drop_lost / loss_drop_nats, both bootstrapped over the same documents; None if the
    share_low: float | None  # interval of loss_drop_nats includes 0
    share_high: float | None
    behind_nats: float  # loss_drop_lost of the induction heads minus that of this row, same method, paired by window;
    # a rotated row is compared with the ablation of the induction heads that loses least of the loss drop
    behind_low: float
    behind_high: float
    repeat_gain_nats: float  # loss on the first copy − loss on the second copy of random tokens, of the whole model
    repeat_gain_lost: float  # part of it that is lost, in nats
    repeat_gain_lost_low: float
    repeat_gain_lost_high: float
    windows: int  # of held-out text
