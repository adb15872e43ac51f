"""Statistics of the corpus, and its bigrams in a model."""

from pathsum.records.registry import record


@record(
    "corpus",
    "mean −log P(next | token) of the smoothed bigram model on held-out text",
    "text/statistics.py",
    stored="data/statistics/summary.json",
    stage="statistics",
)
class CorpusSummary:
    """Sizes of the corpus, unigram and bigram losses."""

    name: str
    corpus_hash: str
    tokenizer_hash: str
    d_vocab: int
    n_ctx: int
    source_documents: int  # of the source; if they are few, the numbers below count the pieces that they are cut into
    train_documents: int
    tuning_documents: int  # for evaluations during training and for every choice
    verdict_documents: int  # for every judgment
    train_tokens: int
    tuning_tokens: int
    verdict_tokens: int
    train_bytes: int
    tuning_bytes: int
    verdict_bytes: int
    judged_documents: int  # verdict documents that contribute windows
    judged_windows: int  # windows on which models and baselines are judged; their number per document is limited
    largest_document: float  # largest share of the judged windows from one document, 0..1
    unigram_entropy_nats: float  # of the unigram distribution of the training text
    unigram_loss_nats: float  # of the smoothed unigram model on the judged windows
    bigram_loss_nats: float  # of the best smoothed bigram model on the judged windows
    bigram_smoothing: str  # smoothing method and its constant, chosen on tuning documents (docs/framework.md §3.1)
    repeated_share: float  # share of tokens of the judged windows that end a trigram seen earlier in the window, 0..1
    repeated_pairs: float  # share of tokens of tuning windows that complete a pair seen earlier in the window, 0..1
    repeat_reliability: float  # there, share of the followers of earlier occurrences that are the next token, 0..1
    induction_saving_nats: float  # there, what an ideal induction head could save (docs/framework.md §6.8), per token


@record("ngrams", "counts", "text/statistics.py", stored="data/statistics/ngrams.parquet", stage="statistics")
class NGramRow:
    """Frequent n-grams. Unigrams and bigrams of the training text, and skip-trigrams whose source is informative."""

    kind: str  # unigram | bigram | skip_trigram (source … destination → out)
    tokens: str  # printable, joined by U+241F
    ids: str  # token ids, joined by spaces
    count: int  # occurrences in the training text; of skip-trigrams, in a sample of its windows
    log_prob_nats: float  # log-probability of the last token given the tokens before it


@record("bigrams", "softmax(W_U W_E)", "circuits/bigram.py")
class BigramRow:
    """Frequent bigrams in the corpus and in the model. See docs/framework.md §3.1."""

    token: str  # printable
    next: str  # printable
    count: int  # occurrences in the training text
    corpus_log_prob_nats: float  # smoothed log P(next | token)
    model_log_prob_nats: float  # log softmax(W_U W_E), the direct path alone
