"""Attention scores of a head as a sum over pairs of paths (docs/framework.md §2.3)."""

from pathsum.records.registry import record


@record(
    "score_paths",
    "attention scores of heads after the first layer, by pairs of paths",
    "Σ w[q, k] (query path at q)ᵀ W_QK (key path at k)",
    "circuits/score_paths.py",
)
class ScorePathRow:
    """The part of a head's attention scores on repeated random tokens that comes from one pair of paths. All pairs of a
    head add up to its scores.

    A path is "direct", a sequence of heads ("L0H3→L1H2"), or "position", the position vector. A bias by distance has
    "position" on both sides.
    """

    layer: int
    head: int
    query: str  # the path to the query
    key: str  # the path to the key
    preference_nats: float  # part of the preference for the key after the earlier occurrence (docs/framework.md §2.4)
    preference_error_nats: float  # standard error over windows
    variance_share: float  # cov(pair, scores) / var(scores) over each query's keys
    exactness: float  # largest relative error of the head's log A as a sum over all pairs, float64


@record(
    "matching",
    "matching positivity on the pair of paths with the largest part of a head's preference",
    "Σ Re λ / Σ |λ| of (M_q W_E c_q)ᵀ W_QK (M_k W_E c_k), M = W_OV ⋯ W_OV along a path",
    "circuits/matching.py",
)
class MatchingRow:
    """The pair of paths with the largest part of a head's preference, and its matching positivity (docs/framework.md
    §5.5)."""

    layer: int
    head: int
    query: str  # path to the query, as in ``ScorePathRow``
    key: str  # path to the key
    chosen_share: float | None  # of the head's preference, on the windows that chose the pair
    judged_share: float | None  # on the other windows; either share is None where the preference is not positive
    positivity: float  # Σ Re λ / Σ |λ| of (M_q W_E c_q)ᵀ W_QK (M_k W_E c_k), −1..1
