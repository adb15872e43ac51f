"""Sufficiency of the induction circuit (docs/framework.md §5.10)."""

from enum import StrEnum

from pathsum.records.registry import record


class Kept(StrEnum):
    """What is kept of a model while everything else is resampled."""

    # whole heads of the first layer, and the induction head
    MODEL = "all heads"
    CIRCUIT = "previous token, two back"
    NO_TWO_BACK = "previous token"
    NO_PREVIOUS = "two back"
    OTHERS = "all but previous token"
    # what the induction head's queries and keys read, beside the embedding at its queries
    KEY = "best previous → K"
    KEYS = "previous → K"
    PREFERENCE = "previous → K, previous → Q, two back → K"
    NO_KEYS = "previous → Q, two back → K"
    NEITHER = "heads of neither kind → Q and K"
    # the same at the norm scale of the whole model
    MINIMAL = "best previous → K, scale frozen"
    ANOTHER = "another head → K, scale frozen"
    NOTHING = "no head, scale frozen"


HEADS = (Kept.MODEL, Kept.CIRCUIT, Kept.NO_TWO_BACK, Kept.NO_PREVIOUS, Kept.OTHERS)
PATHS = (Kept.KEY, Kept.KEYS, Kept.PREFERENCE, Kept.NO_KEYS, Kept.NEITHER)
FROZEN = (Kept.MINIMAL, Kept.ANOTHER, Kept.NOTHING)


@record("sufficiency", "value with everything else resampled / value of the whole model", "extraction/sufficiency.py")
class SufficiencyRow:
    """Prefix matching, second-copy gain and loss drop with the induction circuit alone. Paths have no gain and no loss
    drop. Intervals: 95 % bootstrap over windows of random tokens; of the loss drop, over documents."""

    kept: str  # a value of ``Kept``
    heads: str  # the kept heads of the first layer, such as "L0H1 L0H3"
    layer: int  # of the induction head
    head: int
    prefix_matching: float  # of the induction head, 0..1
    matching_share: float | None  # prefix_matching / that of the whole model; None unless its interval is above 0
    matching_low: float | None
    matching_high: float | None
    repeat_gain_nats: float | None  # loss on the first copy − loss on the second copy
    gain_share: float | None  # repeat_gain_nats / that of the whole model; None unless its interval is above 0
    gain_low: float | None
    gain_high: float | None
    loss_drop_nats: float | None  # in-context loss drop on held-out text, minus that of the bigram model
    loss_drop_share: float | None  # loss_drop_nats / that of the whole model; None unless its interval is above 0
    loss_drop_low: float | None
    loss_drop_high: float | None
    windows: int  # of repeated random tokens
    text_windows: int  # of held-out text
