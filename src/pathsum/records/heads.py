"""Scores of each head, by behaviour and by weights."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record

COPYING = 0.5  # eigenvalue positivity from which a head copies by its weights


@record(
    "heads",
    "prefix matching, previous token, copying (by behaviour and by weights), QK matching of each head",
    "mean A[p, p − block + 1]; mean A[i, i − 1]; mean sign of what is written for the token to come; Σ Re λ / Σ |λ| of "
    "W_U W_OV W_E and of W_Eᵀ W_QK W_OV^prev W_E",
    "extraction/framework.py",
)
@dataclass(frozen=True)
class HeadRow:
    layer: int  # from 0
    head: int  # from 0
    prefix_matching: float
    previous_token: float
    copying: float
    bos: float  # mean attention to the beginning-of-sequence token
    copying_positivity: float  # Σλ / Σ|λ| of W_U W_OV W_E
    copying_top1: float  # share of tokens whose own logit they raise most
    copying_top5: float
    qk_matching_positivity: float | None  # Σλ/Σ|λ| of W_Eᵀ W_QK W_OV^prev W_E; None in the first layer
    previous_head: int | None  # the first-layer head that W_OV^prev is taken from

    @property
    def copies(self) -> bool:
        """Whether the head copies by its weights."""
        return self.copying_positivity > COPYING


@record("distances", "attention by distance", "mean A[i, i − distance]", "probes/positional.py")
@dataclass(frozen=True)
class DistanceRow:
    layer: int
    head: int
    distance: int  # query − key
    attention: float  # mean over held-out text


@record(
    "labels",
    "behaviours of each head, with interval, chance and threshold",
    "means of A over windows, bootstrapped",
    "behaviour/labels.py",
)
@dataclass(frozen=True)
class LabelRow:
    """A head's score for one behaviour, its 95 % bootstrap interval over documents (random tokens: windows), and
    the score of uniform causal attention."""

    layer: int
    head: int
    behaviour: str  # a kind of test follows a colon; value-weighted ones only stand beside the plain
    score: float  # mean attention, 0..1; of copying the mean sign, −1..1
    low: float
    high: float
    chance: float
    threshold: float | None  # what ``low`` must exceed for the label; None where the score gives none
    distance: int | None  # tokens back, of ``offset``; None for the others
    labelled: bool  # whether the head has this label

    @property
    def name(self) -> str:
        """The behaviour, without the kind of test."""
        return self.behaviour.split(":")[0]


@record("eigenvalues", "OV eigenvalues", "λ of W_U W_OV W_E", "circuits/eigenvalues.py")
@dataclass(frozen=True)
class EigenvalueRow:
    layer: int
    head: int
    real: float
    imag: float
