"""Heads by their weights, virtual heads, and the parts of the residual stream."""

from pathsum.records.registry import OfHead, record


@record("token_clusters", "eigenvectors of W_U W_OV W_E", "circuits/token_clusters.py")
class TokenClusterRow(OfHead):
    """Clusters of tokens that raise each other through an OV circuit. See docs/framework.md §3.11."""

    rank: int  # from 1, largest eigenvalue first
    eigenvalue: float  # logits
    cohesion: float  # mean OV entry between different tokens of the cluster / standard deviation of all entries
    chance: float  # mean cohesion under random rotations of W_OV
    spread: float  # standard deviation of cohesion under random rotations of W_OV
    tokens: str  # printable, largest weight first, joined by U+241F


@record("directions", "singular vectors of W_OV", "circuits/token_clusters.py")
class DirectionRow(OfHead):
    """Tokens that the leading singular directions of each head read and write. See docs/framework.md §3.12."""

    rank: int  # from 1, largest singular value first
    gain: float  # singular value σ_i
    share: float  # σ_i² / Σ σ², 0..1
    read: str  # tokens of the largest entries of v_iᵀ W_E, printable, joined by U+241F
    written: str  # tokens of the largest entries of W_U u_i, printable, joined by U+241F


@record("joint_copying", "W_U (Σ_h W_OV^h) W_E", "circuits/joint_copying.py")
class JointCopyingRow:
    """Joint copying of heads with similar patterns. Of heads of one layer (docs/framework.md §3.7)."""

    layer: int
    heads: str  # numbers of the heads, joined by spaces
    similarity: float  # smallest cosine between the patterns of two of the heads, 0..1
    positivity: float  # Σ Re λ / Σ |λ| of the summed circuit, −1..1
    top1: float  # share of tokens whose own logit the summed circuit raises most, 0..1
    top5: float  # share of tokens whose own logit is among the five that it raises most, 0..1
    best_top1: float  # top1 of the best single head of the group
    chance_top1: float | None  # mean top1 of other sets of as many heads of the layer; None without other sets


@record(
    "overlaps",
    "‖P W_OV^early‖² / ‖W_OV^early‖², P the projection on the subspace that the late head reads",
    "circuits/subspaces.py",
)
class OverlapRow:
    """Overlap of the subspaces that early heads write and late heads read. See docs/framework.md §3.15."""

    kind: str  # reader of the late head: Q, K or V
    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    share: float  # ‖P W_OV^early‖² / ‖W_OV^early‖², 0..1
    chance: float  # mean of share under random rotations
    spread: float  # standard deviation of share under random rotations


@record("bandwidth", "(Σ σ²)² / Σ σ⁴, σ the singular values", "circuits/subspaces.py")
class BandwidthRow:
    """Effective ranks. Participation ratios; W_E and W_U without their means over tokens (docs/framework.md §3.15)."""

    part: str  # W_E, W_U, W_OV or W_QK
    layer: int | None  # None for W_E and W_U
    head: int | None
    effective_rank: float  # 1..rank
    rank: int  # largest possible value


@record(
    "deleting",
    "tr(W_OV C) / √(tr(W_OV C W_OVᵀ) tr C), C the covariance of earlier writes; −Σ ⟨o, y⟩ / Σ ⟨y, y⟩",
    "circuits/deleting.py",
)
class DeletingRow(OfHead):
    """Alignment of each head's write with earlier writes, and the share of earlier writes that it removes. §3.16."""

    alignment: float  # −1..1; −1: the head writes the opposite of the earlier write that it reads
    spread: float  # standard deviation of alignment under random rotations; the mean is 0
    removed: float  # share of earlier writes at the same position that the head's output cancels, on held-out text


@record("virtual_heads", "A^late A^early ⊗ W_OV^late W_OV^early", "circuits/virtual_heads.py")
class VirtualHeadRow:
    """Composition, pattern and removal cost of each virtual head. See docs/framework.md §2.8."""

    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    composition: float  # V-composition ‖W_OV^late W_OV^early‖ / (‖W_OV^late‖ ‖W_OV^early‖), 0..1
    composition_chance: float  # root mean square of composition under random rotations
    positivity: float  # Σ Re λ / Σ |λ| of W_U W_OV^late W_OV^early W_E, −1..1
    previous_token: float  # previous-token score of A^late A^early on held-out text, 0..1
    peak_distance: int  # distance of the largest mean attention, up to half of the window, in tokens
    peak_attention: float  # mean attention at this distance, 0..1
    prefix_matching: float  # of A^late A^early on repeated random tokens, 0..1
    cost_nats: float  # loss on held-out text without the path − loss with it
    cost_error_nats: float  # standard error over documents


@record("balance", "Σ ‖part‖² / Σ ‖x‖²; Σ ⟨part, x⟩ / Σ ‖x‖²", "circuits/balance.py")
class BalanceRow:
    """Norm of each part of the residual stream, and its share of the stream that a layer reads. See §7.3."""

    reader: int  # layer that reads the stream; n_layers stands for the unembedding
    part: str  # embedding, all writes of a layer (L0) or of a head (L0H1)
    norm: float  # root mean square over positions of ‖part‖, before the normalization of the reader
    power_share: float  # Σ ‖s part‖² / Σ ‖s x‖², with s the norm scale of the reader
    projection_share: float  # Σ s² ⟨part, x⟩ / Σ ‖s x‖²; embedding and layers add up to 1
