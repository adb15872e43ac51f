"""Scores of each head, by behavior and by weights."""

from pathsum.records.registry import record

COPYING = 0.5  # eigenvalue positivity above which a head copies by its weights


@record(
    "heads",
    "prefix matching, previous-token score, copying (by behavior and by weights) and QK matching of each head",
    "mean A[p, p − block + 1]; mean A[i, i − 1]; mean sign of the head's centered logit of the next token; Σ Re λ / "
    "Σ |λ| of W_U W_OV W_E and of W_Eᵀ W_QK W_OV^prev W_E",
    "extraction/framework.py",
)
class HeadRow:
    """The scores of a head, by behavior and by weights."""

    layer: int  # from 0
    head: int  # from 0
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


@record("distances", "attention by distance", "mean A[i, i − distance]", "behavior/positional.py")
class DistanceRow:
    """The mean attention of a head to the key at one distance."""

    layer: int
    head: int
    distance: int  # query position − key position, in tokens
    attention: float  # mean over held-out text, 0..1


@record(
    "labels",
    "score of each head for each behavior, with interval, chance and threshold",
    "mean of A over queries and windows; label if the lower end of the interval > max(threshold, 3 chance)",
    "behavior/labels.py",
)
class LabelRow:
    """The score of a head for one behavior (docs/framework.md §5.7), with its chance level: the score of uniform causal
    attention, or for copying the score on another window's tokens."""

    layer: int
    head: int
    behaviour: str  # name, in some rows followed by a colon and the kind of test
    score: float  # mean attention, 0..1; for copying the mean sign, −1..1
    low: float  # 95 % bootstrap over documents (random tokens: over windows)
    high: float
    chance: float
    threshold: float | None  # the label requires low > threshold; None for value-weighted scores, which give no label
    distance: int | None  # distance of the attended key in tokens, for ``offset``; None for other behaviors
    labelled: bool  # whether the head has this label

    @property
    def name(self) -> str:
        """Return the behavior without the kind of test, such as "induction"."""
        return self.behaviour.split(":")[0]


@record("eigenvalues", "eigenvalues of the OV circuits", "λ of W_U W_OV W_E", "circuits/eigenvalues.py")
class EigenvalueRow:
    """A non-zero eigenvalue of the OV circuit W_U W_OV W_E of a head (docs/framework.md §3.5)."""

    layer: int
    head: int
    real: float
    imag: float
