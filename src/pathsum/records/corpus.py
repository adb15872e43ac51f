"""Statistics of the text, without a model."""

from pathsum.records.registry import record


@record(
    "corpus",
    "tokens, unigram and bigram loss",
    "mean −log P(next | token) of the smoothed corpus model on held-out text",
    "ngrams/statistics.py",
    stored="data/statistics/summary.json",
    stage="statistics",
)
class CorpusSummary:
    """The sizes of the corpus, and the losses of the smoothed n-gram models."""

    name: str
    corpus_hash: str
    tokenizer_hash: str
    d_vocab: int
    n_ctx: int
    train_documents: int
    tuning_documents: int  # for training's evaluations, learning curves and every choice
    verdict_documents: int  # for every judgment
    train_tokens: int
    tuning_tokens: int
    verdict_tokens: int
    train_bytes: int
    tuning_bytes: int
    verdict_bytes: int
    judged_documents: int  # verdict documents with windows
    judged_windows: int  # windows that models and baselines are judged on, at most a fixed number per document
    largest_document: float  # share of those windows in the largest document, 0..1
    unigram_entropy_nats: float  # of the training text's own unigram distribution
    unigram_loss_nats: float  # of the smoothed unigram model on the judged windows
    bigram_loss_nats: float  # of the best smoothed bigram model on the judged windows
    bigram_smoothing: str  # the smoothing and its constant, the best on tuning documents
    repeated_share: float  # share of trigrams of the judged windows that occurred before in the same window


@record(
    "ngrams",
    "frequent n-grams",
    "counts",
    "ngrams/statistics.py",
    stored="data/statistics/ngrams.parquet",
    stage="statistics",
)
class NGramRow:
    """A frequent n-gram of the training text: ``kind`` is unigram, bigram or skip_trigram (source … dest → out)."""

    kind: str
    tokens: str  # printable, parts joined by U+241F
    ids: str  # token ids, joined by spaces
    count: int
    log_prob_nats: float  # of the last token given the others (unigram: of the token)
