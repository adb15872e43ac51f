"""Losses without a head, an edge or a pattern."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "ablations",
    "losses without a head, an edge or a pattern",
    "loss with something else in its place − loss as it is; later layers computed again",
    "extraction/causal.py",
)
@dataclass(frozen=True)
class AblationRow:
    """The effect of an intervention on a head, an edge, a virtual head or a pattern: with it minus without."""

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


@record(
    "edge_contrasts",
    "the K-edge of induction against the strongest other edge",
    "rise without the one − rise without the other, by window",
    "extraction/edge_contrasts.py",
)
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
