"""How closely the sum over all paths reproduces the logits and the attention scores of a model."""

from pathsum.records.registry import record


@record(
    "exactness",
    "exactness check of the path sums of logits and of attention scores, at every checkpoint",
    "max |Σ paths − logits| / max |logits|; max |Σ pairs of paths − log A| / max |log A|",
    "circuits/paths.py",
)
class ExactnessRow:
    """The largest relative errors of the path sums at one checkpoint, in float64 (docs/framework.md §2.2).

    Attention scores are checked past the first layer, unless positions are rotary or keys are smeared
    (docs/framework.md §2.3).
    """

    step: int
    tokens_seen: int
    max_relative_error: float  # of the logits
    scores_max_relative_error: float | None  # of log A; None if no attention scores are checked
