"""The summary of one model: the numbers that claims and metrics.json use."""

from pathsum.records.evaluation import Evaluation
from pathsum.records.registry import record


@record(
    "summary",
    "in-context loss drop = mean loss at 8 to 12 % of the window − mean loss in its last tenth; for windows of 512 or "
    "more tokens: near the 50th token − near the 500th token",
    "extraction/cell.py",
    stored="CELL/summary.json",
)
class CellSummary:
    """A model's losses, best head scores and onset. Head scores are those of ``HeadRoles``."""

    cell: str  # name of the model
    n_layers: int
    n_heads: int  # per layer
    d_model: int
    d_head: int
    n_ctx: int
    d_vocab: int
    seed: int
    positions: str
    norm: str
    smeared_keys: bool
    shuffled: bool  # whether the tokens of each training window were in random order (control)
    repeat_weight: float  # at first, weight in the training loss of tokens that complete a pair seen in the window
    repeat_tokens: int  # tokens seen until that weight is 1; 0 = it is held to the end
    batch: int  # windows per update of training
    tokens_seen: int  # in training
    weights_hash: str
    val_loss_nats: float  # on verdict windows; val_loss_low, val_loss_high: 95 % bootstrap over documents
    in_context_loss_drop_nats: float  # docs/framework.md §6.1
    repeat_first_loss_nats: float  # on the first copy of repeated random tokens
    repeat_second_loss_nats: float  # on the second copy
    repeat_guessing_nats: float  # loss of guessing: log of the number of tokens that blocks are sampled from
    repeat_top1: float  # top-1 accuracy on the second copy, 0..1
    prefix_matching: float | None  # of the induction head, 0..1; None without heads
    previous_token: float | None  # of the previous-token head, 0..1; None without heads
    copying_heads: int | None  # number of heads whose OV eigenvalue positivity exceeds 0.5; None without heads
    exactness: float  # largest relative error of all exactness checks, docs/framework.md §2.2, float64
    onset_tokens: int | None  # tokens seen at the onset (docs/framework.md §6.3); None without an onset
    onset_low: int | None  # tokens seen at the evaluation before the onset
    onset_high: int | None  # tokens seen at the evaluation after the onset
    bigram_correlation: float  # of W_U W_E with the corpus's log P(next | token), docs/framework.md §3.1, −1..1
    unigram_correlation: float  # of log P(next) with log P(next | token), docs/framework.md §3.2, −1..1
    beyond_unigram_low: float  # 95 % bootstrap over current tokens of bigram_correlation − unigram_correlation
    beyond_unigram_high: float
    bigram_partial_correlation: float  # bigram_correlation with log P(next) held constant; 0 for a unigram model
    direct_path_kl_nats: float  # KL(P(next | token) of the corpus ‖ softmax(W_U W_E)), weighted by frequency
    val_loss_low: float | None = None
    val_loss_high: float | None = None
    in_context_loss_drop_low: float | None = None
    in_context_loss_drop_high: float | None = None
    icl_loss_drop_nats: float | None = None  # docs/framework.md §6.2; None for short windows
    icl_loss_drop_low: float | None = None
    icl_loss_drop_high: float | None = None
    icl_late_token: int | None = None  # later token of this drop: 500 as in ICL, or the last multiple of 10 that fits
    bigram_excess_nats: float | None = None  # val_loss_nats − loss of the smoothed bigram model on the same windows
    bigram_excess_low: float | None = None
    bigram_excess_high: float | None = None
    device: str = ""  # device of training; "" if unknown
    device_peak_flops: float | None = None  # FLOP/s of bf16 matrix products on one GPU; None: CPU, or unknown


record("log", "as in summary", "training/evaluate.py", stored="CELL/log.jsonl")(Evaluation)
