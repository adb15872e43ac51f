"""Matches of tokens that are similar but not equal: they differ by case only, or by a leading space only."""

from pathsum.records.registry import record


class FuzzyKind:
    """Token before the follower, or copy and control passage, of ``FuzzyMatchingRow``."""

    CASE, SPACE, CHANCE = "case", "leading space", "chance"
    VARIANTS = (CASE, SPACE)
    EXACT, RENAMED, SHUFFLED, ANOTHER = "exact copy", "renamed copy", "shuffled passage", "another passage"
    OVER_SHUFFLED, OVER_ANOTHER = "renamed − shuffled", "renamed − another"

    @staticmethod
    def equal(variant: str) -> str:
        return f"equal ({variant})"

    @staticmethod
    def unrelated(variant: str) -> str:
        return f"unrelated ({variant})"


class FuzzyMeasure:
    """Measures of fuzzy matching. “Over unrelated” is a difference from an unrelated token, paired by query."""

    ATTENTION, SCORE = "attention", "match score"  # 0..1; standard deviations over all pairs of tokens
    ATTENTION_OVER, SCORE_OVER = "attention over unrelated", "match score over unrelated"
    LIKELY_OVER = "log-probability over unrelated"  # nats
    GAIN = "gain "  # prefix of the measures of the whole model; nats per token
    KEPT, AFTER, NEW = "gain after a kept token", "gain after a renamed token", "gain of a renamed token"
    GAINS = (KEPT, AFTER, NEW)


@record(
    "fuzzy_matching",
    "A[last, follower] by the token before the follower; (M_q W_E)ᵀ W_QK M_k W_E; loss of the copy after BOS − loss "
    "after the first copy",
    "extraction/fuzzy_matching.py",
)
class FuzzyMatchingRow:
    """Attention and match scores of tokens that are similar but not equal; gains on a renamed copy. See
    docs/framework.md §5.13."""

    layer: int | None  # of the induction head; None for gains, which belong to the whole model
    head: int | None
    kind: str  # a value of ``FuzzyKind``
    measure: str  # a value of ``FuzzyMeasure``
    value: float
    low: float  # 95 % bootstrap over families of similar tokens, or over documents
    high: float
    n: int  # families or documents
