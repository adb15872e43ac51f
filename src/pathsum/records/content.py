"""Worth and scores by content, whatever heads moved it."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "content",
    "worth of content by hops and by offset",
    "fall of the loss as content is added that moved at 0, 1, … heads, or comes from 0, 1, … tokens back",
    "circuits/content.py",
)
@dataclass(frozen=True)
class ContentRow:
    """The worth of content on held-out windows, whatever heads moved it, patterns and norm scales frozen there.
    Intervals: 95 % bootstrap over documents."""

    kind: str  # hops: heads at which it changed position | offset: tokens back that it comes from
    content: str  # of hops 0, 1, …; of offset 0 (current token), 1, 2, 3+ or BOS (the first position, at any offset)
    added_nats: float  # fall of the loss when it joins the rows before it; the first joins log d_vocab
    added_low: float
    added_high: float
    removed_nats: float  # rise of the loss when it alone is taken away
    removed_low: float
    removed_high: float
    own_scale_nats: float | None  # as added_nats, norms taking the scale of these hops alone; None of offsets
    own_scale_low: float | None
    own_scale_high: float | None
    windows: int
    exactness: float  # of both kinds: the rows' sum against the logits, largest relative error, float64


@record(
    "content_scores",
    "a head's scores by content of query and key",
    "Σ w(q, k) · content at q · content at k, by tokens back, whatever heads carried it",
    "circuits/content.py",
)
@dataclass(frozen=True)
class ContentScoreRow:
    """A head's attention scores on repeated random tokens by the content of query and key, whatever heads moved it; a
    head's rows add up to its scores."""

    layer: int
    head: int
    query: str  # offset of the content at the query, as in ``ContentRow``; "position" as in ``ScorePathRow``
    key: str  # and at the key
    preference_nats: float  # of the key after the earlier occurrence, over the query's mean key
    preference_error_nats: float  # standard error over windows
    variance_share: float  # cov(pair, scores) / var(scores) over each query's keys
    exactness: float  # of the whole head, added up by offset and by hops, as in ``ScorePathRow``
    share_low: float | None  # of the pair's share of the head's preference: 95 % bootstrap over windows
    share_high: float | None  # None where the head has no preference
