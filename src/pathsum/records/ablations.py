"""Effects of interventions on the losses."""

from pathsum.records.registry import record

METHODS = ("zero", "mean", "resample")  # what replaces a head's write
CONTRASTED = ("zero", "resample")  # the methods by which edges are compared; a claim must hold with both
CONTROL = "rotated"  # removes the head's write rotated at random: a write of the same size in random directions
OUTSIDE = "outside"  # rivals of the K-edges of induction: the strongest set of as many edges outside the circuit
SAME_PAIRS = ("Q", "V")  # rivals: the edges of this kind between the same pairs of heads


@record("ablations", "loss with the intervention − loss without it; later layers recomputed", "extraction/causal.py")
class AblationRow:
    """Losses under interventions on a head, an edge, a virtual head or a pattern. See docs/framework.md §5.8, §5.9."""

    target: str  # head | edge | virtual (head) | pattern (attention pattern of a head)
    kind: str | None  # input of the later head that an edge patches: Q, K or V; None for other targets
    layer: int  # of the head; of the later head for an edge or a virtual head
    head: int
    early_layer: int | None  # of the earlier head of an edge or a virtual head; None for other targets
    early_head: int | None
    method: str  # replacement of the write: zero | mean | resample | rotated (random rotation) | previous token
    patterns: str  # later attention patterns and norm scales: recomputed | frozen
    loss_nats: float  # change of the loss on held-out windows
    loss_low: float  # 95 % bootstrap over documents
    loss_high: float
    loss_drop_nats: float  # change of the in-context loss drop on the same windows
    second_copy_nats: float  # change of the loss on the second copy of repeated random tokens
    second_copy_low: float  # 95 % bootstrap over windows
    second_copy_high: float
    prefix_matching: float  # change of the best head's prefix matching; 0 if patterns are frozen
    windows: int  # held-out windows; the same number of windows of repeated random tokens


@record(
    "edge_contrasts",
    "second-copy loss without the K-edges − second-copy loss without the rivals, paired by window",
    "extraction/circuit.py",
)
class EdgeContrastRow:
    """The K-edges of induction against as many other edges. Intervals: 95 % bootstrap over windows (§5.9)."""

    method: str  # zero | resample
    rival: str  # OUTSIDE or one of SAME_PAIRS
    edges: str  # the K-edges, cut together: "L0H0 → L1H1 (K), L0H2 → L1H1 (K)"
    rivals: str
    key_nats: float  # rise of the loss without the K-edges
    key_low: float
    key_high: float
    rival_nats: float  # rise of the loss without the rivals
    rival_low: float
    rival_high: float
    difference_nats: float  # key_nats − rival_nats, paired by window
    low: float
    high: float
    windows: int  # that judge


INDUCTION, OTHERS = "induction", "others"  # kinds of ablated heads


@record(
    "joint_ablation",
    "value of the whole model − value under zero, mean or resample ablation",
    "extraction/joint_ablation.py",
)
class JointAblationRow:
    """Parts of the loss drop and of the second-copy gain that are lost with all induction heads ablated, at
    checkpoints. Intervals: 95 % bootstrap (docs/framework.md §5.11)."""

    step: int
    tokens_seen: int
    ablated: str  # induction: all induction heads at the end of training | others: control, heads of the same layers
    heads: str  # joined by spaces
    n_heads: int  # fewer for a control whose layers have too few other heads
    method: str  # zero | mean | resample | rotated (control: a write of equal norm is removed in random directions)
    loss_drop_nats: float  # in-context loss drop of the whole model minus that of the bigram model on these windows
    loss_drop_lost: float  # part of it that is lost, in nats
    loss_drop_lost_low: float
    loss_drop_lost_high: float
    share: float | None  # loss_drop_lost / loss_drop_nats, both bootstrapped over the same documents; None if the
    share_low: float | None  # interval of loss_drop_nats includes 0
    share_high: float | None
    behind_nats: float  # loss_drop_lost of the induction heads by this method (rotated: the mildest) − loss_drop_lost
    behind_low: float
    behind_high: float
    repeat_gain_nats: float  # loss on the first copy − loss on the second copy of random tokens, of the whole model
    repeat_gain_lost: float  # part of it that is lost, in nats
    repeat_gain_lost_low: float
    repeat_gain_lost_high: float
    windows: int  # of held-out text


@record(
    "attention_sinks",
    "mean A[i, 0]; loss with A[·, 0] = 0 − loss without intervention; other attention unchanged or scaled to sum to 1",
    "behavior/attention_sinks.py",
)
class AttentionSinkRow:
    """Attention to the first token, and the rise of the loss without this attention. At every second position of
    held-out windows (docs/framework.md §5.15). Intervals: 95 % bootstrap over documents."""

    layer: int
    head: int | None  # None: all heads of the layer together
    attention: float  # mean attention to the first token over all later queries, 0..1
    attention_low: float
    attention_high: float
    chance: float  # the same mean under uniform causal attention
    silenced_nats: float  # rise of the loss with A[q, 0] = 0 and other attention unchanged
    silenced_low: float
    silenced_high: float
    forbidden_nats: float  # rise of the loss with A[q, 0] = 0 and other attention scaled to sum to 1
    forbidden_low: float
    forbidden_high: float
    control_nats: float  # as forbidden_nats, with key 1 in place of key 0
    control_low: float
    control_high: float
    windows: int
