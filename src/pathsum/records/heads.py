"""Scores of each head, by behavior and by weights."""

from pathsum.records.registry import OfHead, record

COPYING = 0.5  # eigenvalue positivity above which a head copies by its weights


@record(
    "heads",
    "mean A[p, p − block + 1]; mean A[i, i − 1]; mean sign of the head's centered logit of the next token; Σ Re λ / "
    "Σ |λ| of W_U W_OV W_E and of W_Eᵀ W_QK W_OV^prev W_E",
    "extraction/framework.py",
)
class HeadRow(OfHead):
    """Prefix matching, previous-token score, copying (by behavior and by weights) and QK matching of each head."""

    prefix_matching: float  # docs/framework.md §5.2, 0..1
    previous_token: float  # mean attention to the previous token, 0..1
    copying: float  # copying by behavior (docs/framework.md §5.3), −1..1
    bos: float  # mean attention to BOS, 0..1
    copying_positivity: float  # Σ Re λ / Σ |λ| of W_U W_OV W_E, −1..1
    copying_top1: float  # share of tokens whose own logit the OV circuit raises most, 0..1
    copying_top5: float  # share of tokens whose own logit is among the five that the OV circuit raises most, 0..1
    qk_matching_positivity: float | None  # Σ Re λ / Σ |λ| of W_Eᵀ W_QK W_OV^prev W_E; None in the first layer
    previous_head: int | None  # number of the first-layer head whose W_OV is W_OV^prev

    @property
    def copies(self) -> bool:
        """Return whether the head copies by its weights: its OV eigenvalue positivity exceeds COPYING."""
        return self.copying_positivity > COPYING


@record("distances", "mean A[i, i − distance]", "behavior/positional.py")
class DistanceRow(OfHead):
    """Attention by distance."""

    distance: int  # query position − key position, in tokens
    attention: float  # mean over held-out text, 0..1


@record(
    "labels",
    "mean of A over queries and windows; label if the lower end of the interval > max(threshold, 3 chance)",
    "behavior/labels.py",
)
class LabelRow(OfHead):
    """Score of each head for each behavior, with interval, chance and threshold. See docs/framework.md §5.7."""

    behaviour: str  # name, in some rows followed by a colon and the kind of test
    score: float  # mean attention, 0..1; for copying the mean sign, −1..1
    low: float  # 95 % bootstrap over documents (random tokens: over windows)
    high: float
    chance: float  # score of uniform causal attention; for copying, on another window's tokens
    threshold: float | None  # the label requires low > threshold; None for value-weighted scores, which give no label
    distance: int | None  # of the attended key in tokens, for ``offset``; None for other behaviors
    labelled: bool

    @property
    def name(self) -> str:
        """Return the behavior without the kind of test, such as "induction"."""
        return self.behaviour.split(":")[0]


@record("eigenvalues", "λ of W_U W_OV W_E", "circuits/eigenvalues.py")
class EigenvalueRow(OfHead):
    """Eigenvalues of the OV circuits. The non-zero ones (docs/framework.md §3.5)."""

    real: float
    imag: float


SPREADS = 2  # standard deviations of the random-rotation null that a copying head must exceed


@record(
    "copying",
    "o · (u − u'), u = Σ A W_U[t]; rise of the loss if A OV[t, t] is taken from the logit of each attended t",
    "extraction/copying.py",
)
class CopyingRow(OfHead):
    """How much each head raises the tokens that it attends to, and the loss without its OV diagonal. Intervals: 95 %
    bootstrap over documents (docs/framework.md §3.18)."""

    attended_nats: float  # logit of the attended tokens, by the head's output, minus that of another window's
    attended_low: float
    attended_high: float
    spread_nats: float  # standard deviation of attended_nats under random rotations, where its mean is 0
    removal_nats: float  # rise of the loss if each attended token loses what the head's own OV entry adds to it
    removal_low: float
    removal_high: float
    windows: int

    @property
    def bar(self) -> float:
        """Return what the lower end of ``attended_nats`` must exceed."""
        return SPREADS * self.spread_nats

    @property
    def copies(self) -> bool:
        """Return whether the head copies by its behavior on text."""
        return self.attended_low > self.bar


@record(
    "softmax_competition",
    "log A[p, p − block + n] − mean over nearby keys of log A; Δ log A_k = −log(1 + A_j (e^δ − 1))",
    "behavior/softmax_competition.py",
)
class SoftmaxCompetitionRow:
    """Preference of heads for the match and for its neighbors, in repeated windows minus other windows. In nats
    of log attention (docs/framework.md §5.14). Intervals: 95 % bootstrap over windows."""

    layer: int
    head: int
    place: str  # key: match (equal to the query's token) | after (key after the match) | before (key before the match)
    preference_nats: float
    preference_low: float
    preference_high: float
    match_attention: float  # mean attention to the match, 0..1
    inhibition_nats: float  # mean change of other keys' log attention if the score of the strongest key rises by 1 nat
    windows: int
