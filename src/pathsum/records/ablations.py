"""Effects of interventions on the losses."""

from pathsum.records.registry import record


@record(
    "ablations",
    "losses under interventions on a head, an edge, a virtual head or a pattern",
    "loss with the intervention − loss without it; later layers recomputed",
    "extraction/causal.py",
)
class AblationRow:
    """The effect of an intervention on a head, an edge, a virtual head or a pattern: values with it minus without."""

    target: str  # head | edge | virtual | pattern
    kind: str | None  # of an edge: Q, K or V, the reader of the later head that is patched; None for other targets
    layer: int  # of an edge or a virtual head: the later head
    head: int
    early_layer: int | None  # the earlier head of an edge or a virtual head; None for other targets
    early_head: int | None
    method: str  # replacement: zero | mean | resample (another window's) | turned (random rotation) | previous token
    patterns: str  # of later layers: recomputed | frozen (norm scales too)
    loss_nats: float  # on held-out windows
    loss_low: float  # 95 % bootstrap over documents
    loss_high: float
    loss_drop_nats: float  # change of the in-context loss drop, on the same windows
    second_copy_nats: float  # loss on the second copy of repeated random tokens
    second_copy_low: float  # 95 % bootstrap over windows, which are independent
    second_copy_high: float
    prefix_matching: float  # change of the best head's score; 0 if patterns are frozen
    windows: int  # of text, and of repeated random tokens


@record(
    "edge_contrasts",
    "the K-edge of induction against the strongest other edge",
    "rise without the one − rise without the other, by window",
    "extraction/causal.py",
)
class EdgeContrastRow:
    """The rise of the second copy's loss without the K-edge from the previous-token head to the induction head, minus
    the rise without the strongest other edge (not a K-edge of the previous-token head), window by window."""

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
