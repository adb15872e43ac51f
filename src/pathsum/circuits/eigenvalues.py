"""Copying and matching by eigenvalues (AMF "copying: eigenvalue analysis").

A circuit by which tokens, or groups of tokens, raise themselves has eigenvalues with positive real parts. An OV matrix
is not normal, so eigenvalues alone may overstate copying: ``diagonal_rank`` is reported with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from pathsum.circuits.qk_ov import qk_circuit
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights


@dataclass(frozen=True)
class DiagonalRank:
    """Share of tokens that raise themselves most, and among the five most, 0..1."""

    top1: float
    top5: float


def copying_eigenvalues(weights: Weights, W_OVs: Sequence[LowRank]) -> list[Complex[Tensor, "rank"]]:
    """Compute the eigenvalues of W_U W_OV W_E for each of ``W_OVs``: of a head, a virtual head, or the sum of several
    heads (``joint_OV``). Positive where attending to a token raises it (docs/framework.md §3.5).

    They are those of the d_head × d_head matrix W_V W_E W_U W_O with ``W_U`` centered over the vocabulary. Logits.
    Costs d_vocab · d_model² once, and d_model² · d_head each. ValueError below float32."""
    _check_precision(weights.W_E)
    W_E_W_U = weights.W_E @ (weights.W_U - weights.W_U.mean(0))
    return [W_OV.after(W_E_W_U).eigenvalues() for W_OV in W_OVs]


def matching_eigenvalues(
    weights: Weights, late: Head, early: Head, unigram: Float[Tensor, "vocab"]
) -> Complex[Tensor, "rank"]:
    """Compute the eigenvalues of W_Eᵀ W_QK^late W_OV^early W_E with ``early`` the previous-token head (AMF "how
    induction heads work", docs/framework.md §5.5). Positive where a head attends to keys whose previous token is the
    current one.

    Each query's mean over keys under ``unigram`` is subtracted first. Nats. Costs d_vocab · d_model · d_head.
    ValueError below float32."""
    _check_precision(weights.W_E)
    return qk_circuit(weights, late.W_QK.after(early.W_OV), unigram).eigenvalues()


def positivity(eigenvalues: Complex[Tensor, "rank"]) -> float:
    """Compute Σ Re λ / Σ |λ| (docs/framework.md §3.5). −1..1: 1 where every token raises itself, −1 where it lowers
    itself, 0 for a zero circuit."""
    size = eigenvalues.abs().sum().item()
    return eigenvalues.real.sum().item() / size if size > 0 else 0.0


def diagonal_rank(circuit: LowRank, sources: Int[Tensor, "source"], block: int = 256) -> DiagonalRank:
    """Compute the share of ``sources``, for example the tokens of the corpus, that raise themselves most
    (docs/framework.md §3.6).

    ``circuit`` is out × source. A tie does not count, so a zero head scores 0. Chance is 1 / d_vocab and 5 / d_vocab.
    Costs d_vocab · sources · d_head, d_vocab × block numbers at a time. ValueError without sources."""
    if len(sources) == 0:
        raise ValueError("expected at least one source token to judge, got none; give torch.arange(d_vocab) for all")
    first = fifth = 0
    for some in sources.split(block):
        logits = circuit.left @ circuit.right[:, some]
        own = logits.gather(0, some.unsqueeze(0))
        rivals = (logits >= own).sum(0) - 1
        first += int((rivals < 1).sum())
        fifth += int((rivals < 5).sum())
    return DiagonalRank(top1=first / len(sources), top5=fifth / len(sources))


def _check_precision(W: Tensor) -> None:
    if torch.finfo(W.dtype).bits < 32:
        raise ValueError(f"eigenvalues need float32 at least, got {W.dtype}; convert with weights.to(torch.float32)")
