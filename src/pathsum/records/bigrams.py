"""Frequent bigrams, in the corpus and by the direct path."""

from pathsum.records.registry import record


@record("bigrams", "frequent bigrams, corpus and model", "softmax of W_U W_E", "circuits/bigram.py")
class BigramRow:
    """A frequent bigram of the training text."""

    token: str
    next: str
    count: int
    corpus_log_prob_nats: float
    model_log_prob_nats: float  # softmax of the direct path alone
