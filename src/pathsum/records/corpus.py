"""Statistics of the text, without a model."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "corpus",
    "tokens, unigram and bigram loss",
    "mean −log P(next | token) of the smoothed corpus model on held-out text",
    "ngrams/statistics.py",
    stored="data/statistics/summary.json",
    stage="statistics",
)
@dataclass(frozen=True)
class CorpusSummary:
    name: str
    corpus_hash: str
    tokenizer_hash: str
    d_vocab: int
    n_ctx: int
    train_documents: int
    tuning_documents: int  # for training's evaluations and learning curves, and for what is chosen
    verdict_documents: int  # for whatever is judged
    train_tokens: int
    tuning_tokens: int
    verdict_tokens: int
    train_bytes: int
    tuning_bytes: int
    verdict_bytes: int
    judged_documents: int  # of the verdict documents, those with windows of their own
    judged_windows: int  # that models and baselines are judged on, at most so many a document
    largest_document: float  # share of those windows that the largest document has, 0..1
    unigram_entropy_nats: float  # of the training text's own unigram distribution
    unigram_loss_nats: float  # of the smoothed unigram model on the judged windows
    bigram_loss_nats: float  # of the best smoothed bigram model there
    bigram_smoothing: str  # which smoothing that was, and its constant: the best on tuning documents
    repeated_share: float  # share of these tokens, with their two predecessors, seen before in the same window


@record(
    "ngrams",
    "frequent n-grams",
    "counts",
    "ngrams/statistics.py",
    stored="data/statistics/ngrams.parquet",
    stage="statistics",
)
@dataclass(frozen=True)
class NGramRow:
    """A frequent n-gram of the training text: ``kind`` is unigram, bigram or skip_trigram (source … dest → out)."""

    kind: str
    tokens: str  # printable, parts joined by U+241F
    ids: str  # the same as ids, joined by spaces
    count: int
    log_prob_nats: float  # of the last token given the others (unigram: of the token)
