"""Eigenvectors and singular vectors of OV circuits, as tokens."""

from pathsum.records.registry import record


@record("token_clusters", "groups of tokens", "eigenvectors of W_U W_OV W_E", "circuits/token_clusters.py")
class TokenClusterRow:
    """A group of tokens that a head maps to each other: a leading real positive eigenvector of W_U W_OV W_E."""

    layer: int
    head: int
    rank: int  # from 1, by eigenvalue
    eigenvalue: float  # logits
    cohesion: float  # mean logit between its tokens, in standard deviations of the circuit
    chance: float  # mean cohesion with the head's writes rotated at random
    spread: float  # standard deviation of the same
    tokens: str  # printable, largest weight first, joined by U+241F


@record("directions", "tokens that are read and written", "singular vectors of W_OV", "circuits/token_clusters.py")
class DirectionRow:
    """A singular direction of W_OV, with the tokens most aligned with what it reads and with what it writes."""

    layer: int
    head: int
    rank: int  # from 1
    gain: float  # singular value
    share: float  # of ‖W_OV‖², 0..1
    read: str  # printable, joined by U+241F
    written: str
