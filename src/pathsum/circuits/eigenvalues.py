"""Measure copying and matching by the eigenvalues of circuits (docs/framework.md §3.5, §3.6 and §5.5).

An OV (output-value) matrix is not normal, so eigenvalues alone may overstate copying; ``diagonal_rank`` is reported
with them. Scale the columns of ``W_E`` first, as in ``qk_ov``, and remove rows of ``W_U`` and columns of ``W_E``
without a token.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Complex, Float, Int
from torch import Tensor

from pathsum.circuits.precision import require_single, unit
from pathsum.circuits.qk_ov import qk_circuit
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights


@dataclass(frozen=True)
class DiagonalRank:
    """Shares of tokens, 0..1, whose own logit is the largest, or among the five largest, in their column of the
    circuit."""

    top1: float
    top5: float


def copying_eigenvalues(weights: Weights, W_OVs: Sequence[LowRank]) -> list[Complex[Tensor, "rank"]]:
    """Return the eigenvalues of W_U W_OV W_E, with ``W_U`` centered over the vocabulary, for each of ``W_OVs``.

    Positive real parts indicate that attending to a token raises its own logit. Each W_OV is that of a head, of a
    virtual head or of several heads together (``joint_OV``). The eigenvalues are computed from the rank × rank matrix
    W_V W_E W_U W_O, which has the same non-zero eigenvalues. In nats before the final norm's scale. ValueError for
    weights in a precision below float32, or with NaN or infinity. See docs/framework.md §3.5."""
    require_single(weights.W_E, weights.W_U, *(part for W_OV in W_OVs for part in (W_OV.left, W_OV.right)))
    W_E_W_U = weights.W_E @ (weights.W_U - weights.W_U.mean(0))
    return [W_OV.after(W_E_W_U).eigenvalues() for W_OV in W_OVs]


def matching_eigenvalues(
    weights: Weights, late: Head, early: Head, unigram: Float[Tensor, "vocab"]
) -> Complex[Tensor, "rank"]:
    """Return the eigenvalues of W_Eᵀ W_QK^late W_OV^early W_E, with ``early`` the previous-token head.

    Positive real parts indicate that the late head attends to keys whose previous token equals the current token. Each
    query's mean over keys, weighted by ``unigram``, is subtracted first. In nats before the late layer's scale at the
    key. ValueError for weights in a precision below float32, or with NaN or infinity, or if ``unigram`` has a negative
    entry or sums to 0. See docs/framework.md §5.5."""
    require_single(weights.W_E, late.W_Q, late.W_K, early.W_V, early.W_O)
    return qk_circuit(weights, late.W_QK.after(early.W_OV), unigram).eigenvalues()


def positivity(eigenvalues: Complex[Tensor, "rank"]) -> float:
    """Return Σ Re λ / Σ |λ| (docs/framework.md §3.5): 1 if all eigenvalues are positive, −1 if all are negative, 0 for
    a zero circuit. ValueError if an eigenvalue is not finite."""
    size = eigenvalues.abs().sum().item()
    if not math.isfinite(size):
        raise ValueError("expected finite eigenvalues, got others; check the weights")
    return eigenvalues.real.sum().item() / size if size > 0 else 0.0


def diagonal_rank(circuit: LowRank, sources: Int[Tensor, "source"], block: int = 256) -> DiagonalRank:
    """Return the shares of ``sources`` whose own logit is the largest, or among the five largest, in their column of
    ``circuit``.

    ``circuit`` is output × source. A tie counts as a failure, so a zero head scores 0. Chance is 1 / d_vocab and
    5 / d_vocab. Costs d_vocab · sources · d_head operations, and d_vocab × block numbers of memory. ValueError if
    ``sources`` is empty, or for a circuit with NaN or infinity. See docs/framework.md §3.6."""
    if len(sources) == 0:
        raise ValueError("expected at least one source token to judge, got none; give torch.arange(d_vocab) for all")
    circuit, first, fifth = unit(circuit), 0, 0
    for some in sources.split(block):
        logits = circuit.left @ circuit.right[:, some]
        own = logits.gather(0, some.unsqueeze(0))
        rivals = (logits >= own).sum(0) - 1
        first += int((rivals < 1).sum())
        fifth += int((rivals < 5).sum())
    return DiagonalRank(top1=first / len(sources), top5=fifth / len(sources))
