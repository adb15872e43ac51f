"""Skip-trigrams of a head: source … destination → out (AMF "one-layer models: skip-trigrams")."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.lowrank import LowRank
from pathsum.circuits.qk_ov import ov_circuit, qk_circuit, shares, top_entries, top_rows
from pathsum.circuits.weights import Head, Weights


@dataclass(frozen=True)
class SkipTrigram:
    """source … destination → out, as token ids."""

    source: int
    destination: int
    out: int
    qk_nats: float  # score of the source above the destination's own mean over keys
    ov_logit: float  # what attending to the source adds to out, above the mean over outputs
    effect: float  # what the list is ranked by


def skip_trigrams(
    weights: Weights, head: Head, unigram: Float[Tensor, "vocab"], k: int, block: int = 256
) -> list[SkipTrigram]:
    """Which skip-trigrams does a head implement? AMF "one-layer models: skip-trigrams".

    Ranked by effect = d_vocab √(P(source) P(destination)) · QK[destination, source] · OV[out, source]. The product is
    how eagerly the destination looks, times what it finds; only pairs above the query's mean and outputs above the
    mean output count. The frequencies keep tokens that were hardly trained from filling the list: the weight is 1
    between tokens of average frequency, and equal frequencies leave the bare product. Nats · logits, from 0.

    Exactly the ``k`` largest, or all positive ones where there are fewer: a triple of the best k lies on one of the k
    pairs whose best triples are largest. Costs 2 · d_vocab² · d_head, block × d_vocab numbers at a time, and k² for the
    choice. ValueError where ``k`` < 1 or ``unigram`` is no distribution.
    """
    qk, ov = qk_circuit(weights, head.W_QK, unigram), ov_circuit(weights, head.W_OV)
    d_vocab = qk.shape[0]
    weight = (d_vocab * shares(unigram).to(qk.left)).sqrt()
    best_out = top_rows(ov, torch.arange(d_vocab, device=weight.device), 1, block)[0].squeeze(-1)
    pairs = top_entries(LowRank(weight.unsqueeze(-1) * qk.left, qk.right * (weight * best_out)), k, block)

    logits, outs = top_rows(ov, pairs.columns, min(k, d_vocab), block)
    nats = (qk.left[pairs.rows] * qk.right.mT[pairs.columns]).sum(-1)
    effects = (weight[pairs.rows] * weight[pairs.columns] * nats.clamp(min=0)).unsqueeze(-1) * logits.clamp(min=0)
    best = effects.flatten().topk(min(k, effects.numel()))
    return [
        SkipTrigram(
            source=int(pairs.columns[pair]),
            destination=int(pairs.rows[pair]),
            out=int(outs[pair, out]),
            qk_nats=nats[pair].item(),
            ov_logit=logits[pair, out].item(),
            effect=effect,
        )
        for effect, (pair, out) in zip(
            best.values.tolist(), (divmod(i, logits.shape[1]) for i in best.indices.tolist()), strict=True
        )
        if effect > 0
    ]
