"""Matches of one, two and three tokens."""

from pathsum.records.registry import record


@record(
    "suffix_matches",
    "attention to the followers of matches of one, two and three tokens",
    "A[last, follower], mean over both orders",
    "behaviour/suffixes.py",
)
class SuffixMatchRow:
    """A head's attention to the followers of two earlier matches of the query's last tokens, on synthetic sequences."""

    layer: int
    head: int
    condition: str  # the matches in the window: "two against one", "one alone", …
    longer: float  # mean attention to the follower of the longer (or the only) match, 0..1
    shorter: float  # mean attention to the other follower, after a shorter match or none
    advantage: float  # longer − shorter
    low: float  # 95 % bootstrap over sequences
    high: float
    chance: float  # uniform attention to either follower
    sequences: int  # each in both orders


@record(
    "suffix_predictions",
    "log-probability of these followers",
    "log P(follower) − log P(follower) without a match",
    "extraction/suffixes.py",
)
class SuffixPredictionRow:
    """Predictions of a model on the same sequences. Gains are over the log-probability without a match."""

    condition: str
    longer_nats: float  # gain of the follower of the longer (or the only) match
    longer_low: float  # 95 % bootstrap over sequences
    longer_high: float
    shorter_nats: float
    shorter_low: float
    shorter_high: float
    advantage_nats: float  # longer − shorter
    low: float
    high: float
    wins: float  # share of windows in which the follower of the longer match has the higher logit, 0..1; chance 0.5
    sequences: int


@record(
    "suffix_cuts",
    "the same with edges into the induction head ablated",
    "softmax of (q + Δq)·(k + Δk), Δ by W_QK from another window's write or the mean write, minus the write",
    "extraction/suffixes.py",
)
class SuffixCutRow:
    """The induction head and the model with some edges into that head ablated."""

    cut: str  # "none", or the set of edges
    edges: str  # readers and earlier heads: "Q←L0H1 K←L0H2"
    method: str  # replacement: resample (another window's write) | mean
    layer: int  # of the induction head
    head: int
    advantage: float  # attention to the follower of a two-token match minus that of a one-token match
    low: float  # 95 % bootstrap over sequences
    high: float
    alone: float  # attention to the follower of a one-token match, the only match
    alone_low: float
    alone_high: float
    gain_nats: float  # log-probability advantage of the follower of the longer match
    gain_low: float
    gain_high: float
    second_copy_nats: float  # rise of the loss on the second copy of repeated random tokens
    second_copy_low: float  # 95 % bootstrap over windows
    second_copy_high: float
    sequences: int
    windows: int  # of repeated random tokens
    left: float | None  # advantage as a share of that without ablation; None if the latter's interval contains 0
    left_low: float | None  # 95 % bootstrap of the ratio, both means over the same resampled sequences
    left_high: float | None
    alone_left: float | None  # the same for ``alone``
    alone_left_low: float | None
    alone_left_high: float | None
