"""Loss reduction by single paths, at frozen and at their own norm scales (docs/framework.md §2.7)."""

from pathsum.records.registry import record


@record(
    "norm_scales",
    "loss reduction by each path at frozen norm scales and at its own norm scales",
    "L(shorter paths through its heads) − L(shorter paths through its heads + path)",
    "extraction/norm_scales.py",
)
class NormScaleRow:
    """The loss reduction at every eighth position of held-out windows, in nats per token, when a path is added to the
    shorter paths through its heads. For one head, the shorter path is the direct path. For two heads, the shorter paths
    are the direct path and both single-head paths. Patterns are frozen. Intervals: 95 % bootstrap over documents."""

    path: str
    order: int  # number of heads on the path
    frozen_nats: float  # at the norm scales of the whole model
    frozen_low: float
    frozen_high: float
    own_nats: float  # at the norm scales of these paths alone
    own_low: float
    own_high: float
    difference_nats: float  # own − frozen
    difference_low: float
    difference_high: float
    frozen_control_nats: float  # frozen_nats when the path's writes are rotated at random
    own_control_nats: float  # own_nats when the path's writes are rotated at random
    windows: int
