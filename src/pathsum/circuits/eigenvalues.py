"""Copying and matching by eigenvalues (AMF "copying: eigenvalue analysis").

A circuit by which tokens, or groups of tokens, raise themselves has eigenvalues with positive real parts. An OV matrix
is not normal, so eigenvalues alone may overstate copying: ``diagonal_rank`` is measured beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from pathsum.circuits.qk_ov import ov_circuit, qk_circuit
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights


@dataclass(frozen=True)
class DiagonalRank:
    """Share of tokens that raise themselves most, and among the five most, 0..1."""

    top1: float
    top5: float


def copying_eigenvalues(weights: Weights, W_OV: LowRank) -> Complex[Tensor, "rank"]:
    """Compute the eigenvalues of W_U W_OV W_E, positive where attending to a token raises it (AMF "copying: eigenvalue
    analysis").

    Those of the d_head × d_head matrix W_V W_E W_U W_O, which shares the non-zero ones; ``W_U`` is centred over the
    vocabulary first. Logits. ``W_OV`` may be a head's, a virtual head's, or the sum of several (``joint_OV``). Costs
    d_vocab · d_model · d_head. ValueError below float32.
    """
    _check_precision(weights.W_E)
    return ov_circuit(weights, W_OV).eigenvalues()


def copying_eigenvalues_of_all(weights: Weights, W_OVs: Sequence[LowRank]) -> list[Complex[Tensor, "rank"]]:
    """Compute ``copying_eigenvalues`` of many heads or virtual heads, which share W_E W_U.

    Costs d_vocab · d_model² once, and d_model² · d_head each: cheaper than one by one from about d_model / (2 d_head)
    heads on. ValueError below float32.
    """
    _check_precision(weights.W_E)
    W_E_W_U = weights.W_E @ (weights.W_U - weights.W_U.mean(0))
    return [W_OV.after(W_E_W_U).eigenvalues() for W_OV in W_OVs]


def matching_eigenvalues(
    weights: Weights, late: Head, early: Head, unigram: Float[Tensor, "vocab"]
) -> Complex[Tensor, "rank"]:
    """Compute the eigenvalues of W_Eᵀ W_QK^late W_OV^early W_E (AMF "how induction heads work"), with ``early`` the
    previous-token head: positive where a head attends to keys whose previous token is the current one.

    Each query's mean over keys under ``unigram``, which softmax ignores, is subtracted first. Nats. Costs
    d_vocab · d_model · d_head. ValueError below float32.
    """
    _check_precision(weights.W_E)
    return qk_circuit(weights, late.W_QK.after(early.W_OV), unigram).eigenvalues()


def positivity(eigenvalues: Complex[Tensor, "rank"]) -> float:
    """Compute Σ Re λ / Σ |λ| (AMF "copying: eigenvalue analysis").

    −1..1: 1 where every token raises itself, −1 where it lowers itself, 0 for a zero circuit.
    """
    size = eigenvalues.abs().sum().item()
    return eigenvalues.real.sum().item() / size if size > 0 else 0.0


def diagonal_rank(circuit: LowRank, sources: Int[Tensor, "source"], block: int = 256) -> DiagonalRank:
    """Compute the share of tokens that raise themselves most, docs/framework.md §3.6.

    ``circuit`` is out × source; ``sources`` are the tokens to judge, for example those of the corpus. A tie does not
    count, so a zero head scores 0. Shares, 0..1; chance is 1 / d_vocab and 5 / d_vocab. Costs
    d_vocab · sources · d_head, d_vocab × block numbers at a time. ValueError where there are no tokens to judge.
    """
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
