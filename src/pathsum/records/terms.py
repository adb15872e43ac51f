"""Loss reduction by the paths of each order (docs/framework.md §2.6)."""

from pathsum.records.registry import record


@record(
    "terms",
    "loss reduction by order of paths, by layer and by head",
    "L(lower orders) − L(lower orders + term); L(all − term) − L(all)",
    "circuits/importance.py",
)
class TermRow:
    """The loss reduction on held-out windows, in nats per token, by one term: all paths of one order, or the paths of
    order 1 through one layer or one head. Patterns and norm scales are frozen. Intervals: 95 % bootstrap over
    documents."""

    order: int  # number of heads on each path
    layer: int | None  # None: paths through any layer
    head: int | None  # None: paths through any head
    paths: int  # number of paths in the term
    added_nats: float  # loss reduction when the term is added to all lower orders; order 0 starts at log d_vocab
    added_low: float
    added_high: float
    removed_nats: float  # rise of the loss when this term alone is removed from the logits
    removed_low: float
    removed_high: float
    own_scale_nats: float | None  # as added_nats, at own norm scales (docs/framework.md §2.7); None by layer or head
    own_scale_low: float | None
    own_scale_high: float | None
    windows: int
