"""Joint copying by several heads with similar attention patterns."""

from pathsum.records.registry import record


@record(
    "joint_copying",
    "joint copying of heads with similar patterns",
    "W_U (Σ_h W_OV^h) W_E",
    "circuits/joint_copying.py",
)
class JointCopyingRow:
    """Copying by the summed OV circuit of several heads of one layer with similar patterns (docs/framework.md §3.7)."""

    layer: int
    heads: str  # numbers of the heads, joined by spaces
    similarity: float  # smallest cosine between the patterns of two of the heads, 0..1
    positivity: float  # Σ Re λ / Σ |λ| of the summed circuit, −1..1
    top1: float  # share of tokens whose own logit the summed circuit raises most, 0..1
    top5: float  # share of tokens whose own logit is among the five that it raises most, 0..1
    best_top1: float  # top1 of the best single head of the group
    chance_top1: float | None  # mean top1 of other sets of as many heads of the layer; None without other sets
