"""Effect on the loss and attention scores by content, regardless of the heads that moved it."""

from pathsum.records.registry import record


@record(
    "content",
    "loss reduction by content, by hops and by offset",
    "loss reduction as content is added that moved at 0, 1, … heads, or comes from 0, 1, … tokens back",
    "circuits/content.py",
)
class ContentRow:
    """The effect of content on the loss on held-out windows, regardless of the heads that moved it. Patterns and norm
    scales are frozen. Intervals: 95 % bootstrap over documents."""

    kind: str  # hops: number of heads at which it changed position | offset: number of tokens back of its source
    content: str  # hops: 0, 1, …; offset: 0 (current token), 1, 2, 3+ or BOS (the first position, at any offset)
    added_nats: float  # loss reduction when it joins the rows before it; the first row starts at log d_vocab
    added_low: float
    added_high: float
    removed_nats: float  # rise of the loss when it alone is removed
    removed_low: float
    removed_high: float
    own_scale_nats: float | None  # as added_nats, with the norm scales of these hops alone; None for offsets
    own_scale_low: float | None
    own_scale_high: float | None
    windows: int
    exactness: float  # largest relative error of the rows' sum against the logits, over both kinds, float64


@record(
    "content_scores",
    "a head's scores by content of query and key",
    "Σ w(q, k) · content at q · content at k, by tokens back, regardless of the heads that moved it",
    "circuits/content.py",
)
class ContentScoreRow:
    """A head's attention scores on repeated random tokens by the content of query and key, regardless of the heads that
    moved it. A head's rows add up to its scores."""

    layer: int
    head: int
    query: str  # offset of the content at the query, as in ``ContentRow``; "position" as in ``ScorePathRow``
    key: str  # the same at the key
    preference_nats: float  # of the key after the earlier occurrence, over the query's mean key
    preference_error_nats: float  # standard error over windows
    variance_share: float  # cov(pair, scores) / var(scores) over each query's keys
    exactness: float  # of the whole head, summed by offset and by hops, as in ``ScorePathRow``
    share_low: float | None  # 95 % bootstrap over windows of the pair's share of the head's preference
    share_high: float | None  # None if the head has no preference
