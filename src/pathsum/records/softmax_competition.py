"""Preference of heads for keys near a repetition."""

from pathsum.records.registry import record


@record(
    "softmax_competition",
    "preference of heads for keys near a repetition",
    "log A[p, p − block + n] − its mean over keys near, repeated − not; Δ log A_k = −log(1 + A_j (e^δ − 1))",
    "behaviour/softmax_competition.py",
)
class SoftmaxCompetitionRow:
    """A head's preference for a key over keys near it: windows that repeat minus windows that do not. Intervals: 95 %
    bootstrap over windows."""

    layer: int
    head: int
    place: str  # match (the same token) | after (the token after it) | before (the one before it)
    preference_nats: float  # of log attention
    preference_low: float
    preference_high: float
    match_attention: float  # mean attention to the match, 0..1
    inhibition_nats: float  # change of each other key's log attention when a query's strongest key gains one nat
    windows: int
