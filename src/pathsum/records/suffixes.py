"""Matches of one, two and three tokens."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "suffix_matches",
    "attention to what followed matches of one, two and three tokens",
    "A[last, follower], mean over both orders",
    "behaviour/suffixes.py",
)
@dataclass(frozen=True)
class SuffixMatchRow:
    """A head's attention to what followed two earlier matches of the query's last tokens, on generated sequences."""

    layer: int
    head: int
    condition: str  # which matches stand in the window: "two against one", "one alone", …
    longer: float  # mean attention to the follower of the longer (or the only) match, 0..1
    shorter: float  # to the follower of the other: a shorter match, or none
    advantage: float  # longer − shorter
    low: float  # 95 % bootstrap over sequences
    high: float
    chance: float  # of either, were the attention uniform
    sequences: int  # each in both orders


@record(
    "suffix_predictions",
    "log-probability of what followed them",
    "log P(follower) − log P(follower) where nothing matches",
    "extraction/suffixes.py",
)
@dataclass(frozen=True)
class SuffixPredictionRow:
    """Predictions of a model on the same sequences; gains are over the log-probability where nothing matches."""

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
    wins: float  # share of windows in which the longer match's follower has the higher logit, 0..1; chance 0.5
    sequences: int


@record(
    "suffix_cuts",
    "the same with edges into the induction head ablated",
    "softmax of (q + Δq)·(k + Δk), Δ by W_QK of another window's or the mean write − the write",
    "extraction/suffixes.py",
)
@dataclass(frozen=True)
class SuffixCutRow:
    """The induction head and the model with some edges into that head ablated."""

    cut: str  # "none", or which edges
    edges: str  # readers and earlier heads: "Q←L0H1 K←L0H2"
    method: str  # what is read in place: resample (another window's) | mean
    layer: int  # of the induction head
    head: int
    advantage: float  # attention to the follower of a match of two tokens minus that of one token
    low: float  # 95 % bootstrap over sequences
    high: float
    alone: float  # attention to the follower of a match of one token, the only one
    alone_low: float
    alone_high: float
    gain_nats: float  # log-probability advantage of the longer match's follower
    gain_low: float
    gain_high: float
    second_copy_nats: float  # rise of the loss on the second copy of repeated random tokens
    second_copy_low: float  # 95 % bootstrap over windows
    second_copy_high: float
    sequences: int
    windows: int  # of repeated random tokens
    left: float | None  # advantage as a share of that without ablation; None where the latter's interval has 0 in it
    left_low: float | None  # 95 % bootstrap of the ratio, both means over the same drawn sequences
    left_high: float | None
    alone_left: float | None  # likewise of ``alone``
    alone_left_low: float | None
    alone_left_high: float | None
