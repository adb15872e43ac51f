"""Loss reduction by paths at frozen norm scales and at their own."""

from pathsum.records.registry import record


@record(
    "norm_scales",
    "loss reduction by each path at frozen norm scales and at its own",
    "L(direct + own heads) − L(direct + own heads + path)",
    "extraction/norm_scales.py",
)
class NormScaleRow:
    """The loss reduction on held-out windows when a path joins the direct path and the single-head paths of its own
    heads. Nats per token, patterns frozen. Intervals: 95 % bootstrap."""

    path: str
    order: int  # heads on it
    frozen_nats: float  # at the whole model's norm scales
    frozen_low: float
    frozen_high: float
    own_nats: float  # at the norm scales of these paths alone
    own_low: float
    own_high: float
    difference_nats: float  # own − frozen
    difference_low: float
    difference_high: float
    frozen_control_nats: float  # with the path's writes rotated at random
    own_control_nats: float
    windows: int
