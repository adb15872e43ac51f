"""Effects of interventions on the losses."""

from pathsum.records.registry import record

METHODS = ("zero", "mean", "resample")  # what replaces a head's write
CONTRASTED = ("zero", "resample")  # the methods by which edges are compared; a claim must hold with both
CONTROL = "rotated"  # removes the head's write rotated at random: a write of the same size in random directions
OUTSIDE = "outside"  # rivals of the K-edges of induction: the strongest set of as many edges outside the circuit
SAME_PAIRS = ("Q", "V")  # rivals: the edges of this kind between the same pairs of heads


@record(
    "ablations",
    "losses under interventions on a head, an edge, a virtual head or a pattern",
    "loss with the intervention − loss without it; later layers recomputed",
    "extraction/causal.py",
)
class AblationRow:
    """The effect of one intervention (docs/framework.md §5.8, §5.9): values with the intervention minus values without
    it."""

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
    "the K-edges of induction against as many other edges",
    "second-copy loss without the K-edges − second-copy loss without the rivals, paired by window",
    "extraction/key_edge.py",
)
class EdgeContrastRow:
    """The contrast of edges (docs/framework.md §5.9): the loss on the second copy without the K-edges from all
    previous-token heads to all induction heads, minus the loss without their rivals: as many edges outside the circuit,
    or the Q-edges or V-edges of the same pairs of heads.

    The rivals outside the circuit are chosen on other windows. Numbers are in nats per token; intervals are
    95 % bootstrap over windows of repeated random tokens.
    """

    method: str  # zero | resample
    rival: str  # kind of the rivals: outside (the circuit), Q or V (of the same pairs of heads)
    edges: str  # the K-edges, cut together: "L0H0 → L1H1 (K), L0H2 → L1H1 (K)"
    rivals: str  # the other edges, cut together
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
