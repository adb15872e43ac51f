"""A head's attention scores by pairs of paths."""

from pathsum.records.registry import record


@record(
    "score_paths",
    "an induction head's scores by pairs of paths",
    "Σ w(q, k) · query path · key path",
    "circuits/score_paths.py",
)
class ScorePathRow:
    """A pair of paths in a head's attention scores on repeated random tokens. A head's pairs add up to its scores.

    A path is "direct", the heads on it ("L0H3→L1H2"), or "position"; "position" on both sides is a bias by distance.
    """

    layer: int
    head: int
    query: str  # the path to the query
    key: str  # the path to the key
    preference_nats: float  # of the key after the earlier occurrence, over the query's mean key
    preference_error_nats: float  # standard error over windows
    variance_share: float  # cov(pair, scores) / var(scores) over each query's keys
    exactness: float  # of the whole head: the sum over pairs against its attention, largest relative error, float64


@record(
    "matching",
    "matching on the pair of paths with the largest part of a head's preference",
    "Σ Re λ / Σ |λ| of (M_q W_E)ᵀ W_QK M_k W_E, M = W_OV ⋯ W_OV along a path, W_E at the scale as read",
    "circuits/matching.py",
)
class MatchingRow:
    """The pair of paths with the largest part of a head's preference, and whether it matches tokens by its weights."""

    layer: int
    head: int
    query: str  # paths as in ``ScorePathRow``
    key: str
    chosen_share: float | None  # of the head's preference, on the half of the repeated windows that chose the pair
    judged_share: float | None  # the same on the other half; both None if the head has no preference
    positivity: float  # Σ Re λ / Σ |λ| of the pair's (M_q W_E)ᵀ W_QK M_k W_E, −1..1
