"""Sums over paths: how exact they are, and what each part contributes to the loss or to attention scores."""

from pathsum.records.registry import OfHead, record


@record(
    "exactness",
    "max |Σ paths − logits| / max |logits|; max |Σ pairs of paths − log A| / max |log A|",
    "circuits/paths.py",
)
class ExactnessRow:
    """Exactness check of the path sums of logits and of attention scores, at every checkpoint. See §2.2."""

    step: int
    tokens_seen: int
    max_relative_error: float  # of the logits, float64
    scores_max_relative_error: float | None  # of log A; None if no attention scores are checked


@record("lens", "loss of softmax(W_U s x_l)", "circuits/logit_lens.py")
class LensRow:
    """Loss by logit lens after each layer. In nats per token on held-out windows (docs/framework.md §3.17)."""

    layers: int  # layers before the unembedding; 0: the embedding alone
    loss_nats: float
    low: float  # 95 % bootstrap over documents
    high: float


@record("terms", "L(lower orders) − L(lower orders + term); L(all − term) − L(all)", "circuits/importance.py")
class TermRow:
    """Loss reduction by order of paths, by layer and by head. On held-out windows, at frozen patterns and norm scales
    (docs/framework.md §2.6). Intervals: 95 % bootstrap over documents."""

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


@record(
    "norm_scales",
    "L(shorter paths through its heads) − L(shorter paths through its heads + path)",
    "extraction/norm_scales.py",
)
class NormScaleRow:
    """Loss reduction by each path at frozen norm scales and at its own norm scales. At every eighth position, at frozen
    patterns (docs/framework.md §2.7). Intervals: 95 % bootstrap over documents."""

    path: str
    order: int  # number of heads on the path
    frozen_nats: float  # at the norm scales of the whole model
    frozen_low: float
    frozen_high: float
    own_nats: float  # at the norm scales of these paths alone
    own_low: float
    own_high: float
    difference_nats: float  # own − frozen
    difference_low: float
    difference_high: float
    frozen_control_nats: float  # frozen_nats when the path's writes are rotated at random
    own_control_nats: float  # own_nats when the path's writes are rotated at random
    windows: int


@record("content", "L(groups before) − L(groups before + group); L(all − group) − L(all)", "circuits/content.py")
class ContentRow:
    """Loss reduction by content, grouped by hops and by offset. On held-out windows, at frozen patterns and norm scales
    (docs/framework.md §2.5, §2.6). Intervals: 95 % bootstrap over documents."""

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


@record("score_paths", "Σ w[q, k] (query path at q)ᵀ W_QK (key path at k)", "circuits/score_paths.py")
class ScorePathRow(OfHead):
    """Attention scores of heads after the first layer, by pairs of paths. On repeated random tokens (docs/framework.md
    §2.3). A path is "direct", a sequence of heads ("L0H3→L1H2"), or "position" (a bias has it on both sides)."""

    query: str  # the path to the query
    key: str  # the path to the key
    preference_nats: float  # part of the preference for the key after the earlier occurrence (docs/framework.md §2.4)
    preference_error_nats: float  # standard error over windows
    variance_share: float  # cov(pair, scores) / var(scores) over each query's keys
    exactness: float  # largest relative error of the head's log A as a sum over all pairs, float64


@record("content_scores", "Σ w[q, k] (offset group at q)ᵀ W_QK (offset group at k)", "circuits/content.py")
class ContentScoreRow(ScorePathRow):
    """Attention scores of heads after the first layer, by content at the query and at the key. On repeated random
    tokens (docs/framework.md §2.5)."""

    share_low: float | None  # 95 % bootstrap over windows of the pair's share of the head's preference
    share_high: float | None  # both ends are None if the head's preference is not positive


@record(
    "matching",
    "Σ Re λ / Σ |λ| of (M_q W_E c_q)ᵀ W_QK (M_k W_E c_k), M = W_OV ⋯ W_OV along a path",
    "circuits/matching.py",
)
class MatchingRow(OfHead):
    """Matching positivity on the pair of paths with the largest part of a head's preference. See §5.5."""

    query: str  # path to the query, as in ``ScorePathRow``
    key: str  # path to the key
    chosen_share: float | None  # of the head's preference, on the windows that chose the pair
    judged_share: float | None  # on the other windows; either share is None where the preference is not positive
    positivity: float  # Σ Re λ / Σ |λ| of (M_q W_E c_q)ᵀ W_QK (M_k W_E c_k), −1..1
