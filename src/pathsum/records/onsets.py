"""The onsets of models on one text, and what it offered to them: a row of reports/corpora.csv, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt


@dataclass(frozen=True)
class TextOnsets:
    """What one text offers, and the onsets of the two-layer models that were trained on it."""

    text: str  # its name; one after @ is that of a profile
    corpus_hash: str
    saving_nats: float  # of an ideal induction head, per token, by the training loss's weights (``text.offer``)
    repeat_weight: float  # in that loss; 1 = none
    batch: int
    n_ctx: int
    tokens: int  # of training, of each model
    onset_tokens: tuple[int | None, ...] = ()  # of each model

    @property
    def onset(self) -> float | None:
        """Return the median over models, a model without an onset being the latest; None if that is one."""
        ordered = sorted(tokens or inf for tokens in self.onset_tokens) or [inf]
        low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        return sqrt(low * high) if high < inf else None

    def is_text_of(self, other: TextOnsets) -> bool:
        """Return whether both are of one text, by its name or its hash."""
        return self.text.split("@")[0] == other.text.split("@")[0] or self.corpus_hash == other.corpus_hash

    def is_alike(self, other: TextOnsets) -> bool:
        """Return whether both are of one text, context and weight of repeats."""
        return self.is_text_of(other) and (self.n_ctx, self.repeat_weight) == (other.n_ctx, other.repeat_weight)
