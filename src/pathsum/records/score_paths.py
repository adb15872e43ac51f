"""A head's attention scores, by pairs of paths."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "score_paths",
    "an induction head's scores by pairs of paths",
    "Σ w(q, k) · query path · key path",
    "circuits/score_paths.py",
)
@dataclass(frozen=True)
class ScorePathRow:
    """A pair of paths in a head's attention scores on repeated random tokens; a head's pairs add up to its scores.

    A path is "direct", the heads on it ("L0H3→L1H2"), or "position"; both sides "position" is a bias by distance.
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
    "matching on the pair of paths that carries a head's score",
    "Σ Re λ / Σ |λ| of (M_q W_E)ᵀ W_QK M_k W_E, M = W_OV ⋯ W_OV along a path, W_E at the scale as read",
    "circuits/matching.py",
)
@dataclass(frozen=True)
class MatchingRow:
    """The pair of paths that a head's preference comes by most, and whether that pair matches tokens by its weights."""

    layer: int
    head: int
    query: str  # paths as in ``ScorePathRow``
    key: str
    chosen_share: float | None  # of the head's preference, on the half of the repeated windows that chose the pair
    judged_share: float | None  # the same on the other half; either None where the head has no preference
    positivity: float  # Σ Re λ / Σ |λ| of the pair's (M_q W_E)ᵀ W_QK M_k W_E, −1..1
