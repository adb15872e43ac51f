"""Findings as frozen records: what a stage writes and the next one reads; figures and claims see nothing else.

One row type a table, so a table's columns are declared here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

CLEAR = 3.0  # Poisson standard errors from which a count is no accident
COPYING = 0.5  # eigenvalue positivity from which a head copies by its weights
SIGNIFICANT = 0.05  # share of false discoveries among the edges that are called significant
COMPOSES = 0.55  # times chance, from which heads compose; tuned on synthetic corpora of seeds 100 to 123
FALSE_COMPOSITION = 0.1  # share of false discoveries among the edges that compose
COMPOSITION_RULE = (  # what an edge that composes does, in the words of the report
    "its composition score, without the direction of the early head's mean write, is above chance (one-sided "
    f"Benjamini–Hochberg q < {FALSE_COMPOSITION}), and at least {COMPOSES} times chance when multiplied by the head's "
    "relative size: the standard deviation of what it writes on held-out text, over the root mean square of that of "
    "all parts that the later layer reads (the embedding and each earlier head)"
)
SPACES = " ␣Ġ▁"  # a leading space, as tokenizers print it
JOINER = "\u241f"  # joins printable tokens, none of which holds it


def word_of(token: str) -> str:
    """Strip case and a leading space: tokens that differ in these alone are the same word."""
    return token.lstrip(SPACES).casefold() or token


def beyond_chance(hits: int, expected: float, lift: float | None) -> bool:
    """Does a text hold a skip-trigram more often than chance, by CLEAR standard errors, and more than a handful?"""
    return lift is not None and hits - expected > CLEAR * expected**0.5


# ---- about the detectors (calibration/) -----------------------------------------------------------------------------


@dataclass(frozen=True)
class CalibrationRow:
    """How far a detector can be trusted: what it finds in models trained on text with known structure."""

    detector: str
    n: int  # units that were looked at: pairs, triples, heads, edges or models
    planted: int  # of those, what is there
    found: int
    hits: int  # found and there
    precision: float | None  # hits / found; None where nothing was found
    precision_low: float | None  # 95 % Wilson interval for the number of independent units, counted by world
    precision_high: float | None
    recall: float | None  # hits / planted; None where nothing was planted
    recall_low: float | None
    recall_high: float | None
    worlds: int  # independent texts and models that the units come from
    planted_worlds: int  # of those, where something is there
    not_learnt: int  # worlds left out, as their model had not learnt what was planted


# ---- about the corpus (data/) ---------------------------------------------------------------------------------------


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
    """The numbers that the claims and metrics.json take from a model; head scores are the best head's."""

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
    curriculum_tokens: int  # of tokens_seen, the first, from the most repetitive windows alone
    curriculum_share: float  # which share of all windows those are
    tokens_seen: int
    weights_hash: str
    val_loss_nats: float  # on verdict windows; low and high: 95 % bootstrap over their documents
    in_context_loss_drop_nats: float
    repeat_first_loss_nats: float
    repeat_second_loss_nats: float
    repeat_guessing_nats: float  # log of how many tokens are drawn from: the second copy's loss by guessing
    repeat_top1: float  # share of the second copy whose next token is the likeliest
    prefix_matching: float | None  # None where there are no heads
    previous_token: float | None  # best of the first layer
    copying_heads: int | None  # heads whose OV eigenvalue positivity exceeds 0.5
    exactness: float  # largest relative error of the path sums, logits and scores, over all checkpoints, float64
    onset_tokens: int | None  # tokens seen when the phase change is half-way; None where there is none
    onset_low: int | None  # the evaluations that bracket it
    onset_high: int | None
    bigram_correlation: float  # direct path against corpus log P(next | token), centred, frequency-weighted, −1..1
    unigram_correlation: float  # of log P(next) alone, which ignores the current token
    beyond_unigram_low: float  # 95 % bootstrap over current tokens of bigram_correlation − unigram_correlation
    beyond_unigram_high: float
    bigram_partial_correlation: float  # log P(next) held constant: 0 for a unigram model
    direct_path_kl_nats: float  # KL(corpus bigram ‖ softmax of the direct path), frequency-weighted
    val_loss_low: float | None = None
    val_loss_high: float | None = None
    in_context_loss_drop_low: float | None = None
    in_context_loss_drop_high: float | None = None
    icl_loss_drop_nats: float | None = None  # 50th token − ``icl_late_token``; None where the window is too short
    icl_loss_drop_low: float | None = None
    icl_loss_drop_high: float | None = None
    icl_late_token: int | None = None  # ICL's 500th, or a shorter window's last round one
    bigram_excess_nats: float | None = None  # val_loss_nats minus the smoothed bigram model's loss on the same windows
    bigram_excess_low: float | None = None
    bigram_excess_high: float | None = None
    device: str = ""  # that it was trained on, "" where that is not known
    device_peak_flops: float | None = None  # of one GPU's bf16 matrix products, measured; None for a processor


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

    @property
    def copies(self) -> bool:
        """Do its weights make it a copying head?"""
        return self.copying_positivity > COPYING


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
    varying: float  # the same without the direction of the early head's mean write, which carries nothing
    size: float  # variation of the early head's writes over that of an average part of what the later layer reads
    chance: float  # root mean square under spectrum-preserving random rotations
    p_value: float  # two-sided
    p_floor: float  # the smallest that so many rotations can give: there p is an upper bound, "<"
    q_value: float  # Benjamini–Hochberg over all edges of the model
    varying_p_value: float  # of ``varying``, one-sided: of a score as high or higher; at least p_floor / 2
    varying_q_value: float  # Benjamini–Hochberg of these over all edges of the model

    @property
    def above(self) -> bool:
        """Is the score above chance, at a false-discovery rate of SIGNIFICANT?"""
        return self.value > self.chance and self.q_value < SIGNIFICANT

    @property
    def weight(self) -> float:
        """The score without the mean write times the early head's relative size: what edges are ranked by."""
        return self.varying * self.size

    @property
    def composes(self) -> bool:
        """Does the later head read what the earlier one writes, by COMPOSITION_RULE? A head that attends alike
        everywhere writes one direction everywhere: later heads become aligned with it, and lose nothing without it."""
        return (
            self.varying > self.chance
            and self.varying_q_value < FALSE_COMPOSITION
            and self.weight >= COMPOSES * self.chance
        )

    @property
    def below(self) -> bool:
        """Do they compose below chance, at the same rate: does one keep out of what the other writes?"""
        return self.value < self.chance and self.q_value < SIGNIFICANT

    @property
    def at_floor(self) -> bool:
        """Is p no more than a bound, for no rotation came as far?"""
        return self.p_value <= self.p_floor

    @property
    def varying_at_floor(self) -> bool:
        """The same of ``varying_p_value``."""
        return self.varying_p_value <= self.p_floor / 2


@dataclass(frozen=True)
class DistanceRow:
    layer: int
    head: int
    distance: int  # query − key
    attention: float  # mean over held-out text


@dataclass(frozen=True)
class SkipTrigramRow:
    """source … destination → out, among those that a head is worth most by on held-out text."""

    layer: int
    head: int
    rank: int  # by effect_logits · places, of those that the choosing documents hold beyond chance
    source: str
    destination: str
    out: str
    places: int  # of choosing windows: source before destination → out
    effect_logits: float  # mean over places of what the source adds to out, above the mean over outputs
    change_nats: float  # mean log P(out) minus that without all the source adds; direct part only after layer 0
    qk_nats: float  # score of the key above the query's own mean, from the weights
    ov_logit: float  # what attending to source adds to out, centred over the vocabulary, from the weights
    text_places: int  # of the judging documents, which chose nothing: source before destination
    text_hits: int  # of those, followed by out
    text_expected: float  # hits if the output did not depend on the source
    text_lift: float | None  # hits over expected; None where both are under 5

    @property
    def borne_out(self) -> bool:
        """Is the skip-trigram in the text of the judging documents?"""
        return beyond_chance(self.text_hits, self.text_expected, self.text_lift)

    @property
    def copies(self) -> bool:
        """Is the output the source token again, but for case and a leading space?"""
        return word_of(self.source) == word_of(self.out)


@dataclass(frozen=True)
class SkipTrigramTallyRow:
    """The skip-trigrams of a head with the largest sum of effects, before any is chosen by the text."""

    layer: int
    head: int
    candidates: int
    copying: int  # of those, output = source
    told: int  # of those, frequent enough to tell in the judging documents
    borne_out: int  # of those, held beyond chance there
    passing: int  # of all candidates, those that both the choosing and the judging documents hold beyond chance
    passing_copying: int  # of those, output = source
    base_rate: float | None  # share with output = source of triples drawn from the text that pass the same two tests
    base_passing: int  # how many of the triples drawn pass them


@dataclass(frozen=True)
class SkipTrigramBugRow:
    """A triple that a head raises because it raises two others with its source, and that the text does not bear out."""

    layer: int
    head: int
    rank: int  # by price_nats · places
    source: str
    destination: str
    out: str
    places: int  # of the windows of the patterns: source before destination, something else than out after it
    price_nats: float  # mean rise of the loss there by what the source adds to the logit of out, > 0
    balance_nats: float  # the same over the places where out follows, too; negative where the triple pays
    qk_nats: float  # as in SkipTrigramRow, > 0
    ov_logit: float  # > 0
    text_places: int
    text_hits: int  # not above text_expected
    text_expected: float
    text_lift: float | None


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
    scores_max_relative_error: float | None  # likewise of log A over pairs of paths; None: no later layer, or no sum


@dataclass(frozen=True)
class TokenClusterRow:
    """A group of tokens that a head maps onto each other: a leading real positive eigenvector of W_U W_OV W_E."""

    layer: int
    head: int
    rank: int  # from 1, by eigenvalue
    eigenvalue: float  # logits
    cohesion: float  # mean logit that they add to each other, in standard deviations of the circuit
    chance: float  # mean of the same in the head with its writes rotated at random
    spread: float  # and its standard deviation
    tokens: str  # printable, largest weight first, joined by U+241F


@dataclass(frozen=True)
class DirectionRow:
    """A singular direction of W_OV: tokens that stand out where it reads, and where it then writes."""

    layer: int
    head: int
    rank: int  # from 1
    gain: float  # singular value
    share: float  # of ‖W_OV‖², 0..1
    read: str  # printable, joined by U+241F
    written: str


@dataclass(frozen=True)
class JointCopyingRow:
    """Heads of one layer with alike patterns, their OV circuits added up."""

    layer: int
    heads: str  # numbers joined by spaces
    similarity: float  # smallest cosine of two of their patterns, 0..1
    positivity: float  # Σλ / Σ|λ| of the sum
    top1: float  # share of tokens whose own logit the sum raises most
    top5: float
    best_top1: float  # of the best of them alone
    chance_top1: float | None  # mean over other sets of as many heads of the layer; None where there is no other


@dataclass(frozen=True)
class OverlapRow:
    kind: str  # Q, K or V: which of the late head's readers
    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    share: float  # of what the early head writes, in the subspace that the late one reads, 0..1
    chance: float  # mean under random rotations
    spread: float  # standard deviation under random rotations


@dataclass(frozen=True)
class BandwidthRow:
    part: str  # W_E, W_U, W_OV or W_QK
    layer: int | None  # None for W_E and W_U
    head: int | None
    effective_rank: float  # participation ratio of the singular values, 1..rank
    rank: int  # the most that it could be


@dataclass(frozen=True)
class DeletingRow:
    """What a head makes of what earlier layers wrote; heads of the first layer have no row."""

    layer: int
    head: int
    alignment: float  # −1 writes the opposite of what it reads of them, 1 the same
    spread: float  # of alignment under random rotations, about a mean of 0
    removed: float  # share of their writes that its output cancels at the same position, on held-out text


@dataclass(frozen=True)
class VirtualHeadRow:
    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    composition: float  # ‖W_OV^late W_OV^early‖ / (‖W_OV^late‖ ‖W_OV^early‖), 0..1
    composition_chance: float  # root mean square under random rotations
    positivity: float  # Σλ / Σ|λ| of W_U W_OV^late W_OV^early W_E
    previous_token: float  # of A^late A^early, on held-out text
    peak_distance: int  # where it looks most, among distances up to half the window
    peak_attention: float
    prefix_matching: float  # of A^late A^early, on repeated random tokens
    cost_nats: float  # loss on held-out text without its path, minus loss with it
    cost_error_nats: float  # standard error over documents


@dataclass(frozen=True)
class AblationRow:
    """What changes when a head, an edge, a virtual head or a pattern is intervened on: with it minus without."""

    target: str  # head | edge | virtual | pattern
    kind: str | None  # Q, K or V: which of the later head's readers no longer sees the earlier one; None but for edges
    layer: int  # of an edge or a virtual head: the later head
    head: int
    early_layer: int | None  # the earlier head of an edge or a virtual head; None for the others
    early_head: int | None
    method: str  # what stands in place: zero | mean | resample (another window's) | turned (control) | previous token
    patterns: str  # recomputed | frozen (norm scales too): those of later layers
    loss_nats: float  # on held-out windows
    loss_low: float  # 95 % bootstrap over documents
    loss_high: float
    loss_drop_nats: float  # of the in-context loss drop, on the same windows
    second_copy_nats: float  # loss on the second copy of repeated random tokens
    second_copy_low: float  # 95 % bootstrap over windows, which share nothing
    second_copy_high: float
    prefix_matching: float  # of the best head's; 0 where patterns are frozen
    windows: int  # that either loss is a mean over


@dataclass(frozen=True)
class JointAblationRow:
    """What is lost at a checkpoint when several heads are replaced together. Intervals: 95 % bootstrap."""

    step: int
    tokens_seen: int
    ablated: str  # induction (all heads that match prefixes at the end) | others (control: of the same layers)
    heads: str  # joined by spaces
    n_heads: int  # how many; of a control fewer than induction heads where the layers have too few others
    method: str  # zero | mean | resample | turned (control: as much is taken away in random directions)
    loss_drop_nats: float  # the in-context loss drop of the whole model, on these windows
    loss_drop_lost: float  # with the heads minus without
    loss_drop_lost_low: float
    loss_drop_lost_high: float
    behind_nats: float  # how much more is lost without the induction heads by the same method, on the same windows;
    # random directions are compared with the method by which the induction heads lose least
    behind_low: float
    behind_high: float
    repeat_gain_nats: float  # repeated random tokens: loss on the first copy minus the second, of the whole model
    repeat_gain_lost: float
    repeat_gain_lost_low: float
    repeat_gain_lost_high: float
    windows: int  # of held-out text


@dataclass(frozen=True)
class SufficiencyRow:
    """What remains of induction when everything but one key edge and its late head is resampled; repeated random
    tokens. Intervals: 95 % bootstrap over windows."""

    kept: str  # circuit (the edge comes from the previous-token head) | another head | nothing (controls)
    early_head: int | None  # of the first layer; None where no edge is kept
    layer: int  # of the induction head
    head: int
    prefix_matching: float  # of the induction head, 0..1
    matching_share: float  # of the whole model's
    matching_low: float
    matching_high: float
    repeat_gain_nats: float  # loss on the first copy minus the second
    gain_share: float  # of the whole model's
    gain_low: float
    gain_high: float
    windows: int


@dataclass(frozen=True)
class SoftmaxCompetitionRow:
    """How much a repetition makes a head prefer a key over keys near it: windows that repeat minus windows that do not.
    Intervals: 95 % bootstrap over windows."""

    layer: int
    head: int
    place: str  # match (the same token) | after (the token after it) | before (the one before it)
    preference_nats: float  # of log attention
    preference_low: float
    preference_high: float
    match_attention: float  # mean attention to the match, 0..1
    inhibition_nats: float  # change of each other key's log attention when a query's strongest key gains one nat
    windows: int


@dataclass(frozen=True)
class AttentionSinkRow:
    """How much a head attends to the first token of held-out windows (attention sink), and what the loss is without:
    with the change minus without it, nats per token. Intervals: 95 % bootstrap."""

    layer: int
    head: int | None  # None: all heads of the layer together
    attention: float  # mean attention to the first token over queries from the second, 0..1
    attention_low: float
    attention_high: float
    chance: float  # of uniform causal attention
    silenced_nats: float  # nothing is moved from the first token
    silenced_low: float
    silenced_high: float
    forbidden_nats: float  # no attention to the first token: the other keys take its share
    forbidden_low: float
    forbidden_high: float
    control_nats: float  # no attention to the second token of the window
    control_low: float
    control_high: float
    windows: int


@dataclass(frozen=True)
class EdgeContrastRow:
    """The rise of the second copy's loss without the K-edge from the previous-token head to the induction head, minus
    that without the strongest other edge (no K-edge of the previous-token head), window by window."""

    method: str  # zero | mean | resample
    early_layer: int
    early_head: int
    layer: int
    head: int
    other_kind: str  # Q, K or V
    other_early_layer: int
    other_early_head: int
    other_layer: int
    other_head: int
    difference_nats: float
    low: float  # 95 % paired bootstrap over windows of random tokens
    high: float
    windows: int


@dataclass(frozen=True)
class TermRow:
    """What paths are worth on held-out windows, patterns and norm scales frozen there: of all heads, of a layer's or of
    one. Intervals: 95 % bootstrap over documents."""

    order: int  # heads on each path
    layer: int | None  # None: of all layers
    head: int | None  # None: of all heads
    paths: int
    added_nats: float  # fall of the loss when they join all paths of lower orders; the direct path joins log d_vocab
    added_low: float
    added_high: float
    removed_nats: float  # rise of the loss when they alone are taken away
    removed_low: float
    removed_high: float
    own_scale_nats: float | None  # as added_nats, norms taking the scale of these orders alone; None but for orders
    own_scale_low: float | None
    own_scale_high: float | None
    windows: int


@dataclass(frozen=True)
class NormScaleRow:
    """A path's worth on held-out windows when it joins the direct path and its own heads' single paths: fall of the
    loss, nats per token, patterns frozen. Intervals: 95 % bootstrap."""

    path: str
    order: int  # heads on it
    frozen_nats: float  # with the whole model's norm scales
    frozen_low: float
    frozen_high: float
    own_nats: float  # norms see these paths alone
    own_low: float
    own_high: float
    difference_nats: float  # own − frozen
    difference_low: float
    difference_high: float
    frozen_control_nats: float  # as much written in random directions
    own_control_nats: float
    windows: int


@dataclass(frozen=True)
class ScorePathRow:
    """A pair of paths in a head's attention scores on repeated random tokens; a head's pairs add up to its scores.

    A path is "direct", the heads on it ("L0H3→L1H2"), or "position"; both sides "position" is a bias by distance.
    """

    layer: int
    head: int
    query: str  # the path to the query
    key: str  # the path to the key
    preference_nats: float  # of the key after the earlier occurrence, over the query's mean key
    preference_error_nats: float  # standard error over windows
    variance_share: float  # cov(pair, scores) / var(scores) over each query's keys
    exactness: float  # of the whole head: the sum over pairs against its attention, largest relative error, float64


class FuzzyKind:
    """What ``FuzzyMatchingRow.kind`` says: the earlier token, or what stands before the second copy."""

    CASE, SPACE, CHANCE = "case", "leading space", "chance"
    VARIANTS = (CASE, SPACE)
    EXACT, RENAMED, SHUFFLED, ANOTHER = "exact copy", "renamed copy", "shuffled passage", "another passage"
    OVER_SHUFFLED, OVER_ANOTHER = "renamed − shuffled", "renamed − another"

    @staticmethod
    def equal(variant: str) -> str:
        """The query itself, on the queries of this kind of variant."""
        return f"equal ({variant})"

    @staticmethod
    def unrelated(variant: str) -> str:
        """The control, on the queries of this kind of variant."""
        return f"unrelated ({variant})"


class FuzzyMeasure:
    """What ``FuzzyMatchingRow.measure`` says. Differences from the unrelated token are paired by query."""

    ATTENTION, SCORE = "attention", "match score"  # 0..1; standard deviations over all pairs of tokens
    ATTENTION_OVER, SCORE_OVER = "attention over unrelated", "match score over unrelated"
    LIKELY_OVER = "log-probability over unrelated"  # nats
    GAIN = "gain "  # how those of the model begin; nats per token
    KEPT, AFTER, NEW = "gain after a kept token", "gain after a renamed token", "gain of a renamed token"
    GAINS = (KEPT, AFTER, NEW)


@dataclass(frozen=True)
class FuzzyMatchingRow:
    """What an earlier token that is alike but not equal is worth to the induction head, or a copy with other names."""

    layer: int | None  # of the induction head; None for gains, which are the model's
    head: int | None
    kind: str  # of FuzzyKind
    measure: str  # of FuzzyMeasure
    value: float
    low: float  # 95 % bootstrap over families of alike tokens, or over documents
    high: float
    n: int  # families or documents


@dataclass(frozen=True)
class SuffixMatchRow:
    """A head's attention to what followed two earlier matches of the query's last tokens, on generated sequences."""

    layer: int
    head: int
    condition: str  # which matches stand in the window: "two against one", "one alone", …
    longer: float  # mean attention to the follower of the longer (or the only) match, 0..1
    shorter: float  # to the follower of the other: a shorter match, or none
    advantage: float  # longer − shorter
    low: float  # 95 % bootstrap over sequences
    high: float
    chance: float  # of either, were the attention uniform
    sequences: int  # each in both orders


@dataclass(frozen=True)
class SuffixPredictionRow:
    """What a model predicts on the same sequences; gains are over the log-probability where nothing matches."""

    condition: str
    longer_nats: float  # gain of the follower of the longer (or the only) match
    longer_low: float  # 95 % bootstrap over sequences
    longer_high: float
    shorter_nats: float
    shorter_low: float
    shorter_high: float
    advantage_nats: float  # longer − shorter
    low: float
    high: float
    wins: float  # share of windows in which the longer match's follower has the higher logit, 0..1; chance 0.5
    sequences: int


@dataclass(frozen=True)
class SuffixCutRow:
    """What the induction head and the model do where some edges into that head are ablated."""

    cut: str  # "none", or which edges
    edges: str  # readers and earlier heads: "Q←L0H1 K←L0H2"
    method: str  # what is read in place: resample (another window's) | mean
    layer: int  # of the induction head
    head: int
    advantage: float  # attention to the follower of a match of two tokens minus that of one token
    low: float  # 95 % bootstrap over sequences
    high: float
    alone: float  # attention to the follower of a match of one token, the only one
    alone_low: float
    alone_high: float
    gain_nats: float  # log-probability advantage of the longer match's follower
    gain_low: float
    gain_high: float
    second_copy_nats: float  # rise of the loss on the second copy of repeated random tokens
    second_copy_low: float  # 95 % bootstrap over windows
    second_copy_high: float
    sequences: int
    windows: int  # of repeated random tokens
    left: float | None  # advantage as a share of that without ablation; None where the latter's interval has 0 in it
    left_low: float | None  # 95 % bootstrap of the ratio, both means over the same drawn sequences
    left_high: float | None
    alone_left: float | None  # likewise of ``alone``
    alone_left_low: float | None
    alone_left_high: float | None


@dataclass(frozen=True)
class ContentRow:
    """What content is worth on held-out windows, whatever heads moved it, patterns and norm scales frozen there.
    Intervals: 95 % bootstrap over documents."""

    kind: str  # hops: heads at which it changed position | offset: tokens back that it comes from
    content: str  # of hops 0, 1, …; of offset 0 (current token), 1, 2, 3+ or BOS (the first position, at any offset)
    added_nats: float  # fall of the loss when it joins the rows before it; the first joins log d_vocab
    added_low: float
    added_high: float
    removed_nats: float  # rise of the loss when it alone is taken away
    removed_low: float
    removed_high: float
    own_scale_nats: float | None  # as added_nats, norms taking the scale of these hops alone; None of offsets
    own_scale_low: float | None
    own_scale_high: float | None
    windows: int
    exactness: float  # of both kinds: the rows' sum against the logits, largest relative error, float64


@dataclass(frozen=True)
class ContentScoreRow:
    """A head's attention scores on repeated random tokens by the content of query and key, whatever heads moved it; a
    head's rows add up to its scores."""

    layer: int
    head: int
    query: str  # offset of the content at the query, as in ``ContentRow``; "position" as in ``ScorePathRow``
    key: str  # and at the key
    preference_nats: float  # of the key after the earlier occurrence, over the query's mean key
    preference_error_nats: float  # standard error over windows
    variance_share: float  # cov(pair, scores) / var(scores) over each query's keys
    exactness: float  # of the whole head, added up by offset and by hops, as in ``ScorePathRow``
    share_low: float | None  # of the pair's share of the head's preference: 95 % bootstrap over windows
    share_high: float | None  # None where the head has no preference


@dataclass(frozen=True)
class MatchingRow:
    """The pair of paths that a head's preference comes by most, and whether that pair matches tokens by its weights."""

    layer: int
    head: int
    query: str  # paths as in ``ScorePathRow``
    key: str
    chosen_share: float | None  # of the head's preference, on the half of the repeated windows that chose the pair
    judged_share: float | None  # the same on the other half; either None where the head has no preference
    positivity: float  # Σ Re λ / Σ |λ| of the pair's (M_q W_E)ᵀ W_QK M_k W_E, −1..1


@dataclass(frozen=True)
class BalanceRow:
    """How large a part of the residual stream is, and its share of what a layer reads, on held-out windows."""

    reader: int  # layer; n_layers is the unembedding
    part: str  # embedding, a layer (L0) or a head (L0H1)
    norm: float  # root mean square over positions, before the reader's norm
    power_share: float  # Σ ‖part‖² / Σ ‖what is read‖²
    projection_share: float  # Σ ⟨part, what is read⟩ / Σ ‖what is read‖²; embedding and layers add up to 1


@dataclass(frozen=True)
class LabelRow:
    """A head's score for one behaviour, its 95 % bootstrap interval over documents (random tokens: windows), and
    what looking at all of the past alike would score."""

    layer: int
    head: int
    behaviour: str  # a kind of test follows a colon; value-weighted ones only stand beside the plain
    score: float  # mean attention, 0..1; of copying the mean sign, −1..1
    low: float
    high: float
    chance: float
    threshold: float | None  # what ``low`` must exceed for the label; None where the score gives none
    distance: int | None  # tokens back, of ``offset``; None for the others
    labelled: bool  # is the head called by this behaviour?

    @property
    def name(self) -> str:
        """The behaviour, without the kind of test."""
        return self.behaviour.split(":")[0]


@dataclass(frozen=True)
class LensRow:
    """The held-out loss if the residual stream is unembedded after this many layers; 95 % bootstrap over documents."""

    layers: int  # from 0: the embedding alone
    loss_nats: float
    low: float
    high: float


@dataclass(frozen=True)
class TokenLossRow:
    """A checkpoint's loss on single held-out tokens: the same tokens for every model with the same context."""

    step: int
    tokens_seen: int
    losses_nats: list[float]


@dataclass(frozen=True)
class ForeignSummary:
    """A model that this project did not train (foreign/<name>/), on the text that was given with it."""

    name: str
    n_layers: int
    n_heads: int  # a layer
    d_model: int
    d_vocab: int
    context: int  # tokens a window
    windows: int  # shown of the text
    loss_nats: float  # on those
    repeat_first_loss_nats: float  # on the first copy of repeated random tokens
    repeat_second_loss_nats: float
    prefix_matching: float | None  # best head's, 0..1; None without heads
    prefix_matching_head: str | None  # layer.head
    prefix_matching_chance: float  # of an even pattern
    previous_token: float | None  # best of the first layer, 0..1
    previous_token_head: str | None
    copying_heads: int  # heads whose OV eigenvalue positivity exceeds 0.5
    bigram_correlation: float  # direct path against the text's log P(next | token), centred, weighted, −1..1
    direct_path_kl_nats: float  # KL(text's bigram ‖ softmax of the direct path), frequency-weighted
    exactness: float | None  # largest relative error of the sum of paths, float64; None: too many paths to add up


@dataclass(frozen=True)
class FormationRow:
    """What has formed by a checkpoint, of the heads that are the previous-token and the induction head in the end."""

    step: int
    tokens_seen: int
    previous_token: float | None  # mean attention to the token before, 0..1; None without heads
    k_composition: float | None  # score over chance, minus 1; None where the induction head is in the first layer
    key_edge_nats: float | None  # of its score, through the edge from the one to the keys of the other; likewise
    prefix_matching: float | None  # 0..1
    loss_drop_nats: float  # on the windows whose bootstrap gives the intervals: fewer than the log's
    loss_drop_low: float | None  # 95 % bootstrap over documents; None of a single document
    loss_drop_high: float | None
    icl_loss_drop_nats: float | None  # at ICL's positions, as in CellSummary
    loss_nats: float


@dataclass(frozen=True)
class ChangePointRow:
    """Where a quantity of ``FormationRow`` changes: half of its rise, or of the loss the bend to a steeper slope."""

    quantity: str  # the field
    tokens_seen: int
    low: int  # the evaluations on either side
    high: int
    low_documents: (
        int | None
    )  # 95 % bootstrap over documents (of prefix matching, windows); None where the change depends on them
    high_documents: int | None
    windows: int | None  # None of composition, which is of the weights


@dataclass(frozen=True)
class PassageRow:
    """A passage that the attention explorer shows; rows in the order of ``PatternRow.passage``."""

    kind: str  # what it is, in words
    tokens: str  # printable, joined by U+241F; begins with BOS, and the last one is only predicted


@dataclass(frozen=True)
class PatternRow:
    """Where a head looks in a passage, by a checkpoint."""

    passage: int
    layer: int
    head: int
    tokens_seen: int
    weighted: bool  # by the size of what is moved
    attention: bytes  # 0..1 in 255ths, a byte each: row after row, query i with its keys 0..i


@dataclass(frozen=True)
class SplitRow:
    """The final logit of one token at one position of a passage, as its paths, patterns and norm scales frozen there;
    float64, centred over the vocabulary."""

    passage: int
    position: int
    target: str  # next: the token that does come next | guess: the model's likeliest
    token: str
    log_prob_nats: float
    logit: float  # the model's
    paths: str  # direct, then the heads of each path, earliest first: L0H3→L1H2; joined by spaces
    parts: list[float]  # logits that each path adds; the sum is ``logit``


@dataclass(frozen=True)
class TokenTableRow:
    """The ``k`` largest entries of a table over tokens, for each of ``tokens``.

    OV: outputs that a head raises where it attends to the token, logits over the mean output; QK: destinations that
    look for it, nats over their mean key; direct: what comes next by the direct path alone, and corpus: in the training
    text, both shares 0..1.
    """

    table: str  # OV | QK | direct | corpus
    layer: int | None  # None for direct and corpus
    head: int | None
    tokens: str  # printable, joined by U+241F
    k: int
    found: str  # ``k`` a token, likewise, largest first
    values: bytes  # of those: float32, little-endian


# ---- the verdicts (reports/) ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClaimResult:
    id: str
    claim: str  # one sentence, the paper's claim in our words
    section: str  # where the paper makes it
    measure: str  # what was measured, in words
    threshold: str  # when it counts as reproduced
    value: float | None
    values: dict[str, float | None]  # a model each
    verdict: str  # reproduced | partly | not | not testable here
    detail: str  # one sentence on the result, numbers included
    short: list[str] = field(default_factory=list)  # models that miss the threshold
