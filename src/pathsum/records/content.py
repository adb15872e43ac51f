"""Loss reduction and attention scores by the content that was moved, whichever heads moved it
(docs/framework.md §2.5)."""

from pathsum.records.registry import record


@record(
    "content",
    "loss reduction by content, grouped by hops and by offset",
    "L(groups before) − L(groups before + group); L(all − group) − L(all)",
    "circuits/content.py",
)
class ContentRow:
    """The loss reduction on held-out windows, in nats per token, by one group of routes: those with the same number of
    hops, or those with the same offset (docs/framework.md §2.5, §2.6). Patterns and norm scales are frozen. Intervals:
    95 % bootstrap over documents."""

    kind: str  # hops: number of heads at which content changed position | offset: its distance from the query
    content: str  # hops: 0, 1, …; offset: 0 (current token), 1, 2, 3+ or BOS (position 0, at any offset)
    added_nats: float  # loss reduction when the group is added to those before it; the first starts at log d_vocab
    added_low: float
    added_high: float
    removed_nats: float  # rise of the loss when this group alone is removed from the logits
    removed_low: float
    removed_high: float
    own_scale_nats: float | None  # as added_nats, at own norm scales (docs/framework.md §2.7); None for offsets
    own_scale_low: float | None
    own_scale_high: float | None
    windows: int
    exactness: float  # largest relative error of the sum of groups against the logits, over both kinds, float64


@record(
    "content_scores",
    "attention scores of heads after the first layer, by content at the query and at the key",
    "Σ w[q, k] (offset group at q)ᵀ W_QK (offset group at k)",
    "circuits/content.py",
)
class ContentScoreRow:
    """The part of a head's attention scores on repeated random tokens that comes from one pair of offset groups: one
    group at the query and one at the key (docs/framework.md §2.5). Over all rows of a head, the parts of the preference
    add up to the head's preference, and the shares of variance to 1."""

    layer: int
    head: int
    query: str  # offset of the content at the query, as in ``ContentRow``; "position" as in ``ScorePathRow``
    key: str  # offset of the content at the key
    preference_nats: float  # part of the preference for the key after the earlier occurrence (docs/framework.md §2.4)
    preference_error_nats: float  # standard error over windows
    variance_share: float  # cov(pair, scores) / var(scores) over each query's keys
    exactness: float  # largest relative error of the head's log A as a sum by offset or by hops, float64
    share_low: float | None  # 95 % bootstrap over windows of the pair's share of the head's preference
    share_high: float | None  # both ends are None if the head's preference is not positive
