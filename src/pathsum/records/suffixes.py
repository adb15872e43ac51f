"""Suffix matching (docs/framework.md §5.12). The follower of a match is the token after the earlier occurrence."""

from enum import StrEnum

from pathsum.records.registry import OfHead, record


class Condition(StrEnum):
    """Lengths of the two matches in a sequence, in tokens."""

    TWO_ONE = "two against one"
    THREE_TWO = "three against two"
    ONE = "one alone"
    TWO = "two alone"
    THREE = "three alone"
    PREVIOUS_ONLY = "previous only"


class Cut(StrEnum):
    """Sets of edges into the induction head that are ablated together (docs/framework.md §5.12)."""

    NONE = "none"
    QUERY_EDGE = "previous token → queries"
    KEY_EDGE = "two back → keys"
    ALL_QUERIES = "all → queries"
    OTHER_KEYS = "all but previous token → keys"
    BUT_ONE_TOKEN = "all but current × previous"  # queries then read no head, and keys only previous-token heads
    PREVIOUS_KEYS = "previous token → keys"
    QUERY_OTHERS = "control: other heads → queries"  # as many edges as QUERY_EDGE, from heads outside the circuit
    KEY_OTHERS = "control: other heads → keys"  # as many edges as KEY_EDGE
    QUERY_RANDOM = "control: random directions → queries"  # QUERY_EDGE, change of the writes rotated at random
    KEY_RANDOM = "control: random directions → keys"


CONTROLS_OF = {  # of each cut
    Cut.QUERY_EDGE: (Cut.QUERY_OTHERS, Cut.QUERY_RANDOM),
    Cut.KEY_EDGE: (Cut.KEY_OTHERS, Cut.KEY_RANDOM),
}


@record("suffix_matches", "A[last, follower], mean over both orders", "behavior/suffixes.py")
class SuffixMatchRow(OfHead):
    """Attention to the followers of matches of one, two and three tokens. Means over sequences, in both orders."""

    condition: str  # a ``Condition``
    longer: float  # mean attention to the follower of the longer (or only) match, 0..1
    shorter: float  # mean attention to the follower of the shorter match, or of the context that does not match
    advantage: float  # longer − shorter
    low: float  # 95 % bootstrap over sequences
    high: float
    chance: float  # attention to a follower under uniform causal attention
    sequences: int


@record(
    "suffix_predictions",
    "log P(follower) − log P(follower) in the sequence where nothing matches",
    "extraction/suffixes.py",
)
class SuffixPredictionRow:
    """Gain of the log-probability of the followers of matches. On the sequences of ``SuffixMatchRow``."""

    condition: str  # as in ``SuffixMatchRow``
    longer_nats: float  # gain of the follower of the longer (or only) match
    longer_low: float  # 95 % bootstrap over sequences
    longer_high: float
    shorter_nats: float  # gain of the other follower
    shorter_low: float
    shorter_high: float
    advantage_nats: float  # longer_nats − shorter_nats
    low: float
    high: float
    wins: float  # share of sequences, in both orders, with a higher logit for the longer match's follower; chance 0.5
    sequences: int


@record(
    "suffix_cuts",
    "softmax of (q + Δq)·(k + Δk); Δ: another window's write or the mean write, minus the write, through W_Q or W_K",
    "extraction/suffixes.py",
)
class SuffixCutRow:
    """Suffix matching with edges into the induction head ablated. Means over sequences, in both orders."""

    cut: str  # a ``Cut``
    edges: str  # the ablated edges, reader ← earlier head: "Q←L0H1 K←L0H2"
    method: str  # replacement of the early head's write: resample (the write in another window) | mean; "" for "none"
    rotation: int | None  # number of the random rotation of the change; None if it is not rotated
    layer: int  # of the induction head
    head: int
    advantage: float  # attention to the follower of a two-token match − attention to that of a one-token match
    low: float  # 95 % bootstrap over sequences
    high: float
    alone: float  # attention to the follower of a one-token match in sequences without another match
    alone_low: float
    alone_high: float
    gain_nats: float  # log P of the follower of the longer match − log P of the other follower
    gain_low: float
    gain_high: float
    second_copy_nats: float  # rise of the loss on the second copy of repeated random tokens
    second_copy_low: float  # 95 % bootstrap over windows
    second_copy_high: float
    sequences: int
    windows: int  # of repeated random tokens
    left: float | None  # advantage / advantage without ablation; None unless the denominator's interval is above 0
    left_low: float | None  # 95 % bootstrap of the ratio; both means use the same resampled sequences
    left_high: float | None
    alone_left: float | None  # alone / alone without ablation; None likewise
    alone_left_low: float | None
    alone_left_high: float | None
    spared: float | None  # of a control: its advantage − that of the cut that it controls; else None
    spared_low: float | None  # 95 % bootstrap over sequences, paired
    spared_high: float | None
