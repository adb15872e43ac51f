"""Matches of tokens that are similar but not equal."""

from pathsum.records.registry import record


class FuzzyKind:
    """Values of ``FuzzyMatchingRow.kind``: the earlier token, or what precedes the second copy."""

    CASE, SPACE, CHANCE = "case", "leading space", "chance"
    VARIANTS = (CASE, SPACE)
    EXACT, RENAMED, SHUFFLED, ANOTHER = "exact copy", "renamed copy", "shuffled passage", "another passage"
    OVER_SHUFFLED, OVER_ANOTHER = "renamed − shuffled", "renamed − another"

    @staticmethod
    def equal(variant: str) -> str:
        """Name the query's own token, on the queries of this kind of variant."""
        return f"equal ({variant})"

    @staticmethod
    def unrelated(variant: str) -> str:
        """Name the control, on the queries of this kind of variant."""
        return f"unrelated ({variant})"


class FuzzyMeasure:
    """Values of ``FuzzyMatchingRow.measure``. Differences from the unrelated token are paired by query."""

    ATTENTION, SCORE = "attention", "match score"  # 0..1; standard deviations over all pairs of tokens
    ATTENTION_OVER, SCORE_OVER = "attention over unrelated", "match score over unrelated"
    LIKELY_OVER = "log-probability over unrelated"  # nats
    GAIN = "gain "  # prefix of the model's measures; nats per token
    KEPT, AFTER, NEW = "gain after a kept token", "gain after a renamed token", "gain of a renamed token"
    GAINS = (KEPT, AFTER, NEW)


@record(
    "fuzzy_matching",
    "attention and match scores of tokens that are similar but not equal; gains from a copy with other names",
    "A[last, follower] by the token before the follower; (M_q W_E)ᵀ W_QK M_k W_E; loss after BOS − loss after a first "
    "copy",
    "extraction/fuzzy_matching.py",
)
class FuzzyMatchingRow:
    """The effect of an earlier similar token on the induction head, or of a copy with other names on the model."""

    layer: int | None  # of the induction head; None for gains, which belong to the model
    head: int | None
    kind: str  # of FuzzyKind
    measure: str  # of FuzzyMeasure
    value: float
    low: float  # 95 % bootstrap over families of similar tokens, or over documents
    high: float
    n: int  # families or documents
