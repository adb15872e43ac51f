"""Findings as frozen records: what a stage writes and the next one reads; figures and claims see nothing else.

One row type a table, so a table's columns are declared here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

# ---- about the corpus (data/) ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CorpusSummary:
    name: str
    corpus_hash: str
    tokenizer_hash: str
    d_vocab: int
    n_ctx: int
    train_documents: int
    val_documents: int
    train_tokens: int
    val_tokens: int
    train_bytes: int
    val_bytes: int
    unigram_entropy_nats: float  # of the training text's own unigram distribution
    unigram_loss_nats: float  # of the smoothed unigram model on the held-out windows
    bigram_loss_nats: float  # of the best smoothed bigram model on the held-out windows
    bigram_smoothing: str  # which smoothing that was, and its constant
    repeated_share: float  # share of held-out tokens, with their two predecessors, seen before in the same window


@dataclass(frozen=True)
class NGramRow:
    """A frequent n-gram of the training text: ``kind`` is unigram, bigram or skip_trigram (source … dest → out)."""

    kind: str
    tokens: str  # printable, parts joined by U+241F
    ids: str  # the same as ids, joined by spaces
    count: int
    log_prob_nats: float  # of the last token given the others (unigram: of the token)


# ---- about one trained model (circuits/<cell>/) ---------------------------------------------------------------------


@dataclass(frozen=True)
class CellSummary:
    """The numbers that the claims and metrics.json take from a cell; head scores are the best head's."""

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
    tokens_seen: int
    weights_hash: str
    val_loss_nats: float
    in_context_loss_drop_nats: float
    repeat_first_loss_nats: float
    repeat_second_loss_nats: float
    prefix_matching: float | None  # None where there are no heads
    previous_token: float | None  # best of the first layer
    copying_heads: int | None  # heads whose OV eigenvalue positivity exceeds 0.5
    exactness: float  # largest relative error of the path sum over all checkpoints, float64
    onset_tokens: int | None  # tokens seen when the phase change is half-way; None where there is none
    onset_low: int | None  # the evaluations that bracket it
    onset_high: int | None
    bigram_correlation: float  # direct path against corpus log P(next | token), centred, frequency-weighted, −1..1
    direct_path_kl_nats: float  # KL(corpus bigram ‖ softmax of the direct path), frequency-weighted


@dataclass(frozen=True)
class HeadRow:
    layer: int  # from 0
    head: int  # from 0
    prefix_matching: float
    previous_token: float
    copying: float
    bos: float  # mean attention to the beginning-of-sequence token
    copying_positivity: float  # Σλ / Σ|λ| of W_U W_OV W_E
    copying_top1: float  # share of tokens whose own logit they raise most
    copying_top5: float
    qk_matching_positivity: float | None  # Σλ/Σ|λ| of W_Eᵀ W_QK W_OV^prev W_E; None in the first layer
    previous_head: int | None  # the first-layer head that W_OV^prev is taken from


@dataclass(frozen=True)
class EigenvalueRow:
    layer: int
    head: int
    real: float
    imag: float


@dataclass(frozen=True)
class CompositionRow:
    kind: str  # Q, K or V
    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    value: float  # 0..1
    chance: float  # root mean square under spectrum-preserving random rotations
    p_value: float  # two-sided
    q_value: float  # Benjamini–Hochberg over all edges of the model


@dataclass(frozen=True)
class DistanceRow:
    layer: int
    head: int
    distance: int  # query − key
    attention: float  # mean over held-out text


@dataclass(frozen=True)
class SkipTrigramRow:
    """source … destination → out."""

    layer: int
    head: int
    rank: int
    source: str
    destination: str
    out: str
    qk_nats: float  # score of the key above the query's own mean
    ov_logit: float  # what attending to source adds to out, centred over the vocabulary
    effect: float  # what the table is ranked by


@dataclass(frozen=True)
class BigramRow:
    token: str
    next: str
    count: int
    corpus_log_prob_nats: float
    model_log_prob_nats: float  # softmax of the direct path alone


@dataclass(frozen=True)
class ExactnessRow:
    step: int
    tokens_seen: int
    max_relative_error: float  # |sum of paths − logits| / |logits|, largest, float64


# ---- the verdicts (reports/) ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClaimResult:
    id: str
    claim: str  # one sentence, the paper's claim in our words
    section: str  # where the paper makes it
    measure: str  # what was measured, in words
    threshold: str  # when it counts as reproduced
    value: float | None
    values: dict[str, float | None]  # a cell each
    verdict: str  # reproduced | partly | not | not testable here
    detail: str  # one sentence on the result, numbers included
