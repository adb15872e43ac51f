"""The summary of an imported model."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ForeignSummary:
    """An imported model (foreign/<name>/), on the text given with it."""

    name: str
    n_layers: int
    n_heads: int  # per layer
    d_model: int
    d_vocab: int
    context: int  # tokens per window
    windows: int  # of the text
    loss_nats: float  # on these windows
    repeat_first_loss_nats: float  # on the first copy of repeated random tokens
    repeat_second_loss_nats: float
    prefix_matching: float | None  # best head's, 0..1; None without heads
    prefix_matching_head: str | None  # layer.head
    prefix_matching_chance: float  # of uniform causal attention
    previous_token: float | None  # best of the first layer, 0..1
    previous_token_head: str | None
    copying_heads: int  # heads whose OV eigenvalue positivity exceeds 0.5
    bigram_correlation: float  # direct path against the text's log P(next | token), centered, weighted, −1..1
    direct_path_kl_nats: float  # KL(text's bigram ‖ softmax of the direct path), frequency-weighted
    exactness: float | None  # largest relative error of the path sum, float64; None if there are too many paths
