"""Token clusters and singular directions: vectors of OV circuits, shown as tokens (docs/framework.md §3.11, §3.12)."""

from pathsum.records.registry import record


@record(
    "token_clusters",
    "clusters of tokens that raise each other through an OV circuit",
    "eigenvectors of W_U W_OV W_E",
    "circuits/token_clusters.py",
)
class TokenClusterRow:
    """A token cluster of a head's OV circuit: among the most frequent tokens, those with the largest entries of an
    eigenvector of W_U W_OV W_E with a real positive eigenvalue. Cohesion measures how much they raise each other."""

    layer: int
    head: int
    rank: int  # from 1, largest eigenvalue first
    eigenvalue: float  # logits
    cohesion: float  # mean OV entry between different tokens of the cluster / standard deviation of all entries
    chance: float  # mean cohesion under random rotations of W_OV
    spread: float  # standard deviation of cohesion under random rotations of W_OV
    tokens: str  # printable, largest weight first, joined by U+241F


@record(
    "directions",
    "tokens that the leading singular directions of each head read and write",
    "singular vectors of W_OV",
    "circuits/token_clusters.py",
)
class DirectionRow:
    """A singular direction of W_OV = Σ_i σ_i u_i v_iᵀ, and the tokens most aligned with v_i (read) and with u_i
    (written), among the most frequent tokens."""

    layer: int
    head: int
    rank: int  # from 1, largest singular value first
    gain: float  # singular value σ_i
    share: float  # σ_i² / Σ σ², 0..1
    read: str  # tokens of the largest entries of v_iᵀ W_E, printable, joined by U+241F
    written: str  # tokens of the largest entries of W_U u_i, printable, joined by U+241F
