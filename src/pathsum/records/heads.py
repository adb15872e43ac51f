"""Scores of each head, by behavior and by weights."""

from pathsum.records.registry import record

COPYING = 0.5  # eigenvalue positivity above which a head copies by its weights


@record(
    "heads",
    "prefix matching, previous token, copying (by behavior and by weights), QK matching of each head",
    "mean A[p, p − block + 1]; mean A[i, i − 1]; mean sign of the head's logit of the next token; Σ Re λ / Σ |λ| of "
    "W_U W_OV W_E and of W_Eᵀ W_QK W_OV^prev W_E",
    "extraction/framework.py",
)
class HeadRow:
    """The scores of a head."""

    layer: int  # from 0
    head: int  # from 0
    prefix_matching: float
    previous_token: float
    copying: float
    bos: float  # mean attention to the beginning-of-sequence token
    copying_positivity: float  # Σλ / Σ|λ| of W_U W_OV W_E
    copying_top1: float  # share of tokens whose own logit the head raises most
    copying_top5: float
    qk_matching_positivity: float | None  # Σλ / Σ|λ| of W_Eᵀ W_QK W_OV^prev W_E; None in the first layer
    previous_head: int | None  # the first-layer head of W_OV^prev

    @property
    def copies(self) -> bool:
        """Whether the head copies by its weights."""
        return self.copying_positivity > COPYING


@record("distances", "attention by distance", "mean A[i, i − distance]", "probes/positional.py")
class DistanceRow:
    """The attention of a head at one distance."""

    layer: int
    head: int
    distance: int  # query − key
    attention: float  # mean over held-out text


@record(
    "labels",
    "behaviors of each head, with interval, chance and threshold",
    "means of A over windows, bootstrapped",
    "behaviour/labels.py",
)
class LabelRow:
    """A head's score for one behavior, its 95 % bootstrap interval over documents (random tokens: windows), and the
    score of uniform causal attention."""

    layer: int
    head: int
    behaviour: str  # the kind of test follows a colon; value-weighted scores give no label
    score: float  # mean attention, 0..1; of copying the mean sign, −1..1
    low: float
    high: float
    chance: float
    threshold: float | None  # ``low`` must exceed it for the label; None if the score gives no label
    distance: int | None  # tokens back, for ``offset``; None for other behaviors
    labelled: bool  # whether the head has this label

    @property
    def name(self) -> str:
        """The behavior, without the kind of test."""
        return self.behaviour.split(":")[0]


@record("eigenvalues", "OV eigenvalues", "λ of W_U W_OV W_E", "circuits/eigenvalues.py")
class EigenvalueRow:
    """A copying eigenvalue of a head."""

    layer: int
    head: int
    real: float
    imag: float
