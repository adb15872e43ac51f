"""Joint copying by heads with similar patterns."""

from pathsum.records.registry import record


@record("joint_copying", "copying of heads with similar patterns", "W_U Σ_h W_OV^h W_E", "circuits/joint_copying.py")
class JointCopyingRow:
    """The sum of the OV circuits of heads of one layer with similar patterns."""

    layer: int
    heads: str  # numbers, joined by spaces
    similarity: float  # smallest cosine of two of their patterns, 0..1
    positivity: float  # Σλ / Σ|λ| of the sum
    top1: float  # share of tokens whose own logit the sum raises most
    top5: float
    best_top1: float  # of the best single head
    chance_top1: float | None  # mean over other sets of as many heads of the layer; None without other sets
