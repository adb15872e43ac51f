"""The direct path W_U W_E, which is at best a bigram model (AMF "zero-layer transformers").

Tables of counts are ``counts[token, next]``: a dense tensor, or anything that gives rows as a dense tensor when sliced.
A model with a norm reads a token alone at the scale of its own embedding: give ``direct_path`` weights whose ``W_E``
columns are multiplied by that scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Weights

FLAT_NATS = 1e-12  # a table that varies less than this varies by rounding alone


@runtime_checkable
class CountRows(Protocol):
    """Rows of ``counts[token, next]`` on demand. A tensor is one."""

    def __getitem__(self, rows: slice, /) -> Tensor: ...


@dataclass(frozen=True)
class BigramFit:
    """Agreement of the direct path with the bigrams of the corpus."""

    correlation: float  # −1..1
    kl_nats: float  # KL(corpus ‖ softmax of the direct path), from 0
    pairs: int  # distinct pairs that occur, which the correlation is over


@dataclass(frozen=True)
class BigramPair:
    """A frequent pair, with its log-probability in the corpus and by the direct path."""

    token: int
    next: int
    count: int
    corpus_log_prob_nats: float
    model_log_prob_nats: float


def direct_path(weights: Weights) -> LowRank:
    """Return W_U W_E (AMF "zero-layer transformers"): logits, out × source, as its two factors at no cost."""
    return LowRank(weights.W_U, weights.W_E)


def compare_with_corpus(direct: LowRank, counts: CountRows, smoothing: float, block: int = 256) -> BigramFit:
    """Compare the direct path with the bigrams of the corpus, docs/framework.md §3.1.

    Correlation of (W_U W_E)[next, token] with log P(next | token) over the pairs that occur. Each is weighted by its
    count, and both sides are centred within each token by its pairs' count-weighted mean, because softmax ignores a
    constant per row. KL is Σ_t P(t) KL(P(· | t) ‖ softmax (W_U W_E)[·, t]), over all next tokens. P(next | token) is
    (count + smoothing · P(next)) / (Σ count + smoothing): ``smoothing`` ≥ 0 is in counts, 0 keeps the raw shares.
    A flat table correlates with nothing: 0. Costs d_vocab² · d_model, block × d_vocab numbers at a time.
    ValueError where counts do not fit the table, or are all zero.
    """
    xx = xy = yy = divergence = 0.0
    pairs, total = 0, 0.0
    for rows in rows_of_pairs(direct, counts, smoothing, block):
        weight = rows.counts
        occurs = weight > 0
        x = centred(rows.model_log_prob, weight)
        y = centred(rows.corpus_log_prob.where(occurs, 0), weight)
        xx += (weight * x * x).sum().item()
        xy += (weight * x * y).sum().item()
        yy += (weight * y * y).sum().item()
        p = rows.corpus_log_prob.exp()
        nats = torch.where(p > 0, p * (rows.corpus_log_prob - rows.model_log_prob), 0).sum(-1)
        divergence += (weight.sum(-1) * nats).sum().item()
        pairs += int(occurs.sum())
        total += weight.sum().item()
    flat = min(xx, yy) < total * FLAT_NATS**2
    return BigramFit(correlation=0.0 if flat else xy / (xx * yy) ** 0.5, kl_nats=divergence / total, pairs=pairs)


def top_pairs(direct: LowRank, counts: CountRows, k: int, smoothing: float, block: int = 256) -> list[BigramPair]:
    """Return the ``k`` most frequent pairs of the corpus with their direct-path log-probabilities, docs/framework.md
    §3.1.

    Log-probabilities in nats, most frequent first; pairs that never occur are left out. Costs and errors as
    ``compare_with_corpus``.
    """
    best: list[BigramPair] = []
    for rows in rows_of_pairs(direct, counts, smoothing, block):
        for i in rows.counts.flatten().topk(min(k, rows.counts.numel())).indices.tolist():
            row, out = divmod(i, rows.counts.shape[1])
            best.append(
                BigramPair(
                    token=int(rows.tokens[row]),
                    next=out,
                    count=round(rows.counts[row, out].item()),
                    corpus_log_prob_nats=rows.corpus_log_prob[row, out].item(),
                    model_log_prob_nats=rows.model_log_prob[row, out].item(),
                )
            )
        best = sorted(best, key=lambda pair: -pair.count)[:k]
    return [pair for pair in best if pair.count > 0]


@dataclass(frozen=True)
class Rows:
    """Rows of the tables of pairs of the corpus and of the model."""

    tokens: Tensor
    counts: Float[Tensor, "source out"]
    corpus_log_prob: Float[Tensor, "source out"]
    unigram_log_prob: Float[Tensor, "out"]  # log P(next), −inf for what never follows
    model_log_prob: Float[Tensor, "source out"]


def rows_of_pairs(direct: LowRank, counts: CountRows, smoothing: float, block: int) -> Iterator[Rows]:
    """Yield the rows of tokens that occur, a block at a time, in float64, which sums over d_vocab² entries need."""
    n_next, n_tokens = direct.shape
    following = torch.zeros(n_next, dtype=torch.float64, device=direct.left.device)
    for start in range(0, n_tokens, block):
        some = counts[start : start + block].to(following)
        if some.shape != (min(block, n_tokens - start), n_next):
            raise ValueError(
                f"expected {min(block, n_tokens - start)} × {n_next} counts for tokens from {start}, got "
                f"{' × '.join(map(str, some.shape))}; count with the tokenizer that the model was trained with"
            )
        following += some.sum(0)
    if following.sum() == 0:
        raise ValueError("expected counts of pairs, got none at all; count a corpus of at least two tokens")
    prior = smoothing * following / following.sum()
    unigram = (following / following.sum()).log()
    for start in range(0, n_tokens, block):
        some = counts[start : start + block].to(following)
        seen = some.sum(-1).nonzero().squeeze(-1)
        some, tokens = some[seen], seen + start
        corpus = ((some + prior) / (some.sum(-1, keepdim=True) + smoothing)).log()
        logits = (direct.left @ direct.right[:, tokens]).mT.to(torch.float64)
        yield Rows(tokens, some, corpus, unigram, logits.log_softmax(-1))


def centred(x: Tensor, weight: Tensor) -> Tensor:
    """Subtract the weighted mean of each row, which softmax ignores."""
    return x - (weight * x).sum(-1, keepdim=True) / weight.sum(-1, keepdim=True)
