"""The numbers of one model that claims and metrics.json use."""

from pathsum.probes.evaluation import Evaluation
from pathsum.records.registry import record


@record(
    "summary",
    "a model's losses, best head scores and onset",
    "loss drop = loss at 8 to 12 % of the window − loss in its last tenth; of 512 tokens: near the 50th − near the "
    "500th",
    "extraction/cell.py",
    stored="CELL/summary.json",
)
class CellSummary:
    """The numbers of a model that claims and metrics.json use. Head scores are the best head's."""

    cell: str
    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    n_ctx: int
    d_vocab: int
    seed: int
    positions: str
    norm: str
    smeared_keys: bool
    shuffled: bool  # trained on windows without order
    curriculum_tokens: int  # first part of tokens_seen, from the most repetitive windows alone
    curriculum_share: float  # share of these among all windows
    tokens_seen: int
    weights_hash: str
    val_loss_nats: float  # on verdict windows; low and high: 95 % bootstrap over their documents
    in_context_loss_drop_nats: float
    repeat_first_loss_nats: float
    repeat_second_loss_nats: float
    repeat_guessing_nats: float  # log of the number of tokens to sample from: the loss of guessing
    repeat_top1: float  # accuracy of the likeliest token on the second copy
    prefix_matching: float | None  # None without heads
    previous_token: float | None  # best of the first layer
    copying_heads: int | None  # heads whose OV eigenvalue positivity exceeds 0.5
    exactness: float  # largest relative error of the path sums, logits and scores, over all checkpoints, float64
    onset_tokens: int | None  # tokens seen at half of the phase change; None without one
    onset_low: int | None  # the evaluations that bracket it
    onset_high: int | None
    bigram_correlation: float  # direct path against corpus log P(next | token), centered, frequency-weighted, −1..1
    unigram_correlation: float  # of log P(next) alone, which ignores the current token
    beyond_unigram_low: float  # 95 % bootstrap over current tokens of bigram_correlation − unigram_correlation
    beyond_unigram_high: float
    bigram_partial_correlation: float  # log P(next) held constant: 0 for a unigram model
    direct_path_kl_nats: float  # KL(corpus bigram ‖ softmax of the direct path), frequency-weighted
    val_loss_low: float | None = None
    val_loss_high: float | None = None
    in_context_loss_drop_low: float | None = None
    in_context_loss_drop_high: float | None = None
    icl_loss_drop_nats: float | None = None  # 50th token − ``icl_late_token``; None if the window is too short
    icl_loss_drop_low: float | None = None
    icl_loss_drop_high: float | None = None
    icl_late_token: int | None = None  # ICL's 500th, or a shorter window's last round one
    bigram_excess_nats: float | None = None  # val_loss_nats minus the smoothed bigram model's loss on the same windows
    bigram_excess_low: float | None = None
    bigram_excess_high: float | None = None
    device: str = ""  # of training, "" if unknown
    device_peak_flops: float | None = None  # of one GPU's bf16 matrix products, measured; None for a CPU


record("log", "the same at every evaluation of training", "as summary", "training/evaluate.py", "CELL/log.jsonl")(
    Evaluation
)
