"""Loss reduction by each order of paths."""

from pathsum.records.registry import record


@record("terms", "loss reduction by order of paths", "loss reduction as orders are added", "circuits/importance.py")
class TermRow:
    """The effect of paths on the loss on held-out windows, through all heads, a layer's heads or one head. Patterns and
    norm scales are frozen. Intervals: 95 % bootstrap over documents."""

    order: int  # heads on each path
    layer: int | None  # None: of all layers
    head: int | None  # None: of all heads
    paths: int
    added_nats: float  # loss reduction when they join all paths of lower orders; the direct path starts at log d_vocab
    added_low: float
    added_high: float
    removed_nats: float  # rise of the loss when they alone are removed
    removed_low: float
    removed_high: float
    own_scale_nats: float | None  # as added_nats, with the norm scales of these orders alone; None for layers and heads
    own_scale_low: float | None
    own_scale_high: float | None
    windows: int
