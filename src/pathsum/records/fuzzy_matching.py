"""Matches of tokens that are similar but not equal."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


class FuzzyKind:
    """Values of ``FuzzyMatchingRow.kind``: the earlier token, or what stands before the second copy."""

    CASE, SPACE, CHANCE = "case", "leading space", "chance"
    VARIANTS = (CASE, SPACE)
    EXACT, RENAMED, SHUFFLED, ANOTHER = "exact copy", "renamed copy", "shuffled passage", "another passage"
    OVER_SHUFFLED, OVER_ANOTHER = "renamed − shuffled", "renamed − another"

    @staticmethod
    def equal(variant: str) -> str:
        """The query itself, on the queries of this kind of variant."""
        return f"equal ({variant})"

    @staticmethod
    def unrelated(variant: str) -> str:
        """The control, on the queries of this kind of variant."""
        return f"unrelated ({variant})"


class FuzzyMeasure:
    """Values of ``FuzzyMatchingRow.measure``. Differences from the unrelated token are paired by query."""

    ATTENTION, SCORE = "attention", "match score"  # 0..1; standard deviations over all pairs of tokens
    ATTENTION_OVER, SCORE_OVER = "attention over unrelated", "match score over unrelated"
    LIKELY_OVER = "log-probability over unrelated"  # nats
    GAIN = "gain "  # how those of the model begin; nats per token
    KEPT, AFTER, NEW = "gain after a kept token", "gain after a renamed token", "gain of a renamed token"
    GAINS = (KEPT, AFTER, NEW)


@record(
    "fuzzy_matching",
    "attention and match scores where tokens are alike but not equal; gains from a copy with other names",
    "A[last, follower] by what stands before the follower; (M_q W_E)ᵀ W_QK M_k W_E; loss behind BOS − loss behind a "
    "first copy",
    "extraction/fuzzy_matching.py",
)
@dataclass(frozen=True)
class FuzzyMatchingRow:
    """The effect of an earlier similar token on the induction head, or of a copy with other names on the model."""

    layer: int | None  # of the induction head; None for gains, which are the model's
    head: int | None
    kind: str  # of FuzzyKind
    measure: str  # of FuzzyMeasure
    value: float
    low: float  # 95 % bootstrap over families of alike tokens, or over documents
    high: float
    n: int  # families or documents
