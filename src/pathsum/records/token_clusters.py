"""Eigenvectors and singular vectors of OV circuits, as tokens."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record("token_clusters", "groups of tokens", "eigenvectors of W_U W_OV W_E", "circuits/token_clusters.py")
@dataclass(frozen=True)
class TokenClusterRow:
    """A group of tokens that a head maps onto each other: a leading real positive eigenvector of W_U W_OV W_E."""

    layer: int
    head: int
    rank: int  # from 1, by eigenvalue
    eigenvalue: float  # logits
    cohesion: float  # mean logit that they add to each other, in standard deviations of the circuit
    chance: float  # mean of the same in the head with its writes rotated at random
    spread: float  # and its standard deviation
    tokens: str  # printable, largest weight first, joined by U+241F


@record("directions", "what is read and then written", "singular vectors of W_OV", "circuits/token_clusters.py")
@dataclass(frozen=True)
class DirectionRow:
    """A singular direction of W_OV: tokens that stand out where it reads, and where it then writes."""

    layer: int
    head: int
    rank: int  # from 1
    gain: float  # singular value
    share: float  # of ‖W_OV‖², 0..1
    read: str  # printable, joined by U+241F
    written: str
