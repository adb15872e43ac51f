"""Frequent bigrams, with their log-probability in the corpus and under the direct path."""

from pathsum.records.registry import record


@record("bigrams", "frequent bigrams in the corpus and in the model", "softmax(W_U W_E)", "circuits/bigram.py")
class BigramRow:
    """A frequent bigram of the training text (docs/framework.md §3.1)."""

    token: str  # printable
    next: str  # printable
    count: int  # occurrences in the training text
    corpus_log_prob_nats: float  # smoothed log P(next | token)
    model_log_prob_nats: float  # log softmax(W_U W_E), the direct path alone
