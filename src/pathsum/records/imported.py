"""The summary of a model from another source (docs/framework.md §2.9)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ImportedSummary:
    """Sizes and scores of an imported model on the user's text; written to imported/<name>/."""

    name: str
    n_layers: int
    n_heads: int  # per layer
    d_model: int
    d_vocab: int
    tokenizer_ids: int  # ids that the tokenizer has; only these count as the vocabulary, except in losses
    context: int  # tokens per window
    documents: int  # of the text, as far as they have a window
    pieces: int  # into which the documents are cut, because they are few; 0 if they are not cut
    windows: int  # on which the loss is measured: all windows of the text, unless there are too many
    loss_nats: float  # on these windows
    traced_windows: int  # on which attention is measured
    repeat_first_loss_nats: float  # on the first copy of repeated random tokens
    repeat_second_loss_nats: float  # on the second copy
    prefix_matching: float | None  # of the best head, 0..1; None without heads
    prefix_matching_head: str | None  # the best head, as layer.head
    prefix_matching_chance: float  # prefix matching of uniform causal attention
    previous_token: float | None  # of the best first-layer head: previous-token score, 0..1; None without heads
    previous_token_head: str | None  # this head, as layer.head
    copying_heads: int  # heads whose OV eigenvalue positivity exceeds 0.5
    bigram_correlation: float  # of W_U W_E with log P(next | token) of the text, docs/framework.md §3.1, −1..1
    direct_path_kl_nats: float  # KL(P(next | token) of the text ‖ softmax(W_U W_E)), weighted by frequency
    exactness: float | None  # largest relative error of the path sum, float64; None if there are too many paths
