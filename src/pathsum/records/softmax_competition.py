"""Softmax competition: how repeated tokens change the attention to a match and to its neighbors (docs/framework.md
§5.14)."""

from pathsum.records.registry import record


@record(
    "softmax_competition",
    "preference of heads for the match and for its neighbors, in repeated windows minus other windows",
    "log A[p, p − block + n] − mean over nearby keys of log A; Δ log A_k = −log(1 + A_j (e^δ − 1))",
    "behavior/softmax_competition.py",
)
class SoftmaxCompetitionRow:
    """The preference of a head for one key over nearby keys, in nats of log attention.

    It is the mean over windows that repeat minus the mean over windows that do not. Intervals: 95 % bootstrap over
    windows.
    """

    layer: int
    head: int
    place: str  # key: match (equal to the query's token) | after (key after the match) | before (key before the match)
    preference_nats: float
    preference_low: float
    preference_high: float
    match_attention: float  # mean attention to the match, 0..1
    inhibition_nats: float  # mean change of other keys' log attention if the score of the strongest key rises by 1 nat
    windows: int
