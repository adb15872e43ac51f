"""The direct path W_U W_E, which is at best a bigram model (AMF "zero-layer transformers"), against the corpus.

Tables of counts are ``counts[token, next]``: a dense tensor, or anything that gives dense rows when sliced. With a
norm, the columns of ``W_E`` must be multiplied by the scale of the bare embedding (docs/framework.md §1.4).
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
from pathsum.statistics.bootstrap import independent, resampled_means

FLAT_NATS = 1e-12  # a table that varies less than this varies by rounding alone
ROUNDING = 1e-9  # of √((1 − r²)(1 − r′²)): tables that differ by less differ by rounding alone


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


@dataclass(frozen=True)
class UnigramControl:
    """Correlations with the corpus's log P(next | token), weighted and centered as in ``compare_with_corpus``."""

    unigram: float  # of log P(next), which ignores the current token; −1..1
    excess_low: float  # 95 % bootstrap over current tokens of the direct path's correlation minus the unigram's
    excess_high: float
    partial: float  # of the direct path with log P(next) held constant; 0 for a unigram model, −1..1


def direct_path(weights: Weights) -> LowRank:
    """Return W_U W_E (AMF "zero-layer transformers"): logits, out × source, as its two factors at no cost."""
    return LowRank(weights.W_U, weights.W_E)


def compare_with_corpus(direct: LowRank, counts: CountRows, smoothing: float, block: int = 256) -> BigramFit:
    """Compare the direct path with the bigrams of the corpus: weighted correlation and divergence (docs/framework.md
    §3.1).

    ``smoothing`` ≥ 0 is in counts; 0 keeps the raw shares. The correlation with a flat table is 0. Costs d_vocab² ·
    d_model, block × d_vocab numbers at a time. ValueError where counts do not fit the table, or are all zero."""
    xx = xy = yy = divergence = 0.0
    pairs, total = 0, 0.0
    for rows in _rows_of_pairs(direct, counts, smoothing, block):
        weight = rows.counts
        occurs = weight > 0
        x = _centred(rows.model_log_prob, weight)
        y = _centred(rows.corpus_log_prob.where(occurs, 0), weight)
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
    """Return the ``k`` most frequent pairs of the corpus with their direct-path log-probabilities (docs/framework.md
    §3.1), most frequent first. Costs and errors as ``compare_with_corpus``."""
    best: list[BigramPair] = []
    for rows in _rows_of_pairs(direct, counts, smoothing, block):
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


def unigram_control(
    direct: LowRank, counts: CountRows, smoothing: float, generator: torch.Generator, block: int = 256
) -> UnigramControl:
    """Compare the direct path's correlation with that of token frequencies alone, whose chance level is not 0
    (docs/framework.md §3.2). Costs and errors as ``compare_with_corpus``."""
    moments = torch.cat([_moments(rows) for rows in _rows_of_pairs(direct, counts, smoothing, block)])
    r_xy, r_yu, r_xu = _correlations(moments.sum(0))
    drawn_xy, drawn_yu, _ = _correlations(resampled_means(moments.mT, independent(moments.mT), generator).mT)
    low, high = torch.quantile(drawn_xy - drawn_yu, drawn_xy.new_tensor([0.025, 0.975])).tolist()
    left = ((1 - r_xu**2) * (1 - r_yu**2)).clamp(min=0).sqrt()
    partial = torch.where(left > ROUNDING, (r_xy - r_xu * r_yu) / left, 0)
    return UnigramControl(r_yu.item(), low, high, partial.item())


@dataclass(frozen=True)
class _Rows:
    """Rows of the tables of pairs of the corpus and of the model."""

    tokens: Tensor
    counts: Float[Tensor, "source out"]
    corpus_log_prob: Float[Tensor, "source out"]
    unigram_log_prob: Float[Tensor, "out"]  # log P(next), −inf for what never follows
    model_log_prob: Float[Tensor, "source out"]


def _rows_of_pairs(direct: LowRank, counts: CountRows, smoothing: float, block: int) -> Iterator[_Rows]:
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
        yield _Rows(tokens, some, corpus, unigram, logits.log_softmax(-1))


def _centred(x: Tensor, weight: Tensor) -> Tensor:
    """Subtract the weighted mean of each row, which softmax ignores."""
    return x - (weight * x).sum(-1, keepdim=True) / weight.sum(-1, keepdim=True)


def _moments(rows: _Rows) -> Float[Tensor, "token kind"]:
    """Return for each current token the weighted sums of x², y², u², xy, yu and xu over its pairs: x is the direct
    path, y = log P(next | token) and u = log P(next)."""
    weight = rows.counts
    x = _centred(rows.model_log_prob, weight)
    y, u = (_centred(table.where(weight > 0, 0), weight) for table in (rows.corpus_log_prob, rows.unigram_log_prob))
    return torch.stack([(weight * a * b).sum(-1) for a, b in ((x, x), (y, y), (u, u), (x, y), (y, u), (x, u))], -1)


def _correlations(sums: Float[Tensor, "*n kind"]) -> Iterator[Tensor]:
    """Yield r_xy, r_yu and r_xu; 0 where one of the two is flat."""
    xx, yy, uu, xy, yu, xu = sums.unbind(-1)
    for ab, aa, bb in ((xy, xx, yy), (yu, yy, uu), (xu, xx, uu)):
        yield torch.where(torch.minimum(aa, bb) > FLAT_NATS**2, ab / (aa * bb).sqrt(), 0)
