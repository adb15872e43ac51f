"""Compare the direct path W_U W_E with the bigrams of the corpus (docs/framework.md §3.1 and §3.2).

A table of counts is indexed as ``counts[token, next]``. With norms, scale the columns of ``W_E`` first, as in
``qk_ov``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.precision import checked
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Weights
from pathsum.statistics.bootstrap import independent, resampled_means, widened

FLAT_NATS = 1e-12  # a table whose entries vary by less than this counts as constant
ROUNDING = 1e-9  # where √((1 − r_xu²)(1 − r_yu²)) is below this, the partial correlation is rounding error and set to 0


@runtime_checkable
class CountRows(Protocol):
    """Bigram counts, indexed [token, next]. Slicing rows gives a dense tensor. A dense tensor itself qualifies."""

    def __getitem__(self, rows: slice, /) -> Tensor: ...


@dataclass(frozen=True)
class BigramFit:
    """Agreement of the direct path's predictions with the bigrams of the corpus, and of token frequencies alone.

    x is log P(next | token) by the direct path, y in the corpus, and u is log P(next) (docs/framework.md §3.2)."""

    correlation: float  # r_xy of the log-probabilities, weighted by count; −1..1
    kl_nats: float  # KL(corpus ‖ softmax of the direct path), mean over current tokens weighted by count; ≥ 0
    pairs: int  # number of distinct pairs that occur; the correlation is over these
    unigram: float  # r_yu: correlation of u with y, −1..1
    excess_low: float  # lower end of the 95 % bootstrap interval of r_xy − r_yu over current tokens
    excess_high: float  # upper end
    partial: float  # r_xy·u: correlation of x with y, with u held constant; −1..1, 0 for a unigram model


@dataclass(frozen=True)
class BigramPair:
    """A frequent pair of tokens, with log P(next | token) in the corpus and by the direct path."""

    token: int
    next: int
    count: int
    corpus_log_prob_nats: float
    model_log_prob_nats: float


def direct_path(weights: Weights, b_U: Float[Tensor, "vocab"] | None = None) -> LowRank:
    """Return the direct path W_U W_E + b_U (logits, output × current token) as its two factors."""
    if b_U is None:
        return LowRank(weights.W_U, weights.W_E)
    ones = torch.ones_like(weights.W_E[:1])
    return LowRank(torch.cat([weights.W_U, b_U[:, None]], 1), torch.cat([weights.W_E, ones]))


def compare_with_corpus(
    direct: LowRank, counts: CountRows, smoothing: float, generator: torch.Generator, block: int = 256
) -> BigramFit:
    """Return the correlation and the divergence between the predictions of the direct path and the bigrams of the
    corpus, and the correlation that token frequencies alone have, which is the chance level.

    All are weighted by count. ``smoothing`` ≥ 0 is the number k of counts that are added to the bigrams of each
    current token, in proportion to the unigram distribution; with 0 the corpus is not smoothed. A correlation is 0 if
    either side is constant for each current token. ``block`` current tokens are processed at a time. The bootstrap
    (2,000 draws) needs 3 · draws · d_vocab numbers of memory. ValueError if the shape of the counts does not fit the
    direct path, if all counts are zero or of a single current token, or for weights with NaN or infinity. See
    docs/framework.md §3.1 and §3.2."""
    moments, divergence, pairs, total = [], 0.0, 0, 0.0
    for rows in _rows_of_pairs(direct, counts, smoothing, block):
        moments.append(_moments(rows))
        p = rows.corpus_log_prob.exp()
        nats = torch.where(p > 0, p * (rows.corpus_log_prob - rows.model_log_prob), 0).sum(-1)
        divergence += (rows.counts.sum(-1) * nats).sum().item()
        pairs += int(rows.counts.count_nonzero())
        total += rows.counts.sum().item()
    by_source = torch.cat(moments)
    if len(by_source) < 2:
        raise ValueError("expected counts of at least two current tokens, got one; count more text")
    by_source = by_source * (len(by_source) / total)  # so that their mean is a variance or covariance, in nats²
    r_xy, r_yu, r_xu = _correlations(by_source.mean(0))
    sources = independent(by_source.mT)
    drawn_xy, drawn_yu, _ = _correlations(resampled_means(by_source.mT, sources, generator).mT)
    low, high = widened(r_xy - r_yu, drawn_xy - drawn_yu, sources).tolist()
    left = ((1 - r_xu**2) * (1 - r_yu**2)).clamp(min=0).sqrt()
    partial = torch.where(left > ROUNDING, (r_xy - r_xu * r_yu) / left, 0)
    return BigramFit(r_xy.item(), divergence / total, pairs, r_yu.item(), low, high, partial.item())


def top_pairs(direct: LowRank, counts: CountRows, k: int, smoothing: float, block: int = 256) -> list[BigramPair]:
    """Return the ``k`` most frequent pairs of the corpus (or all that occur, if fewer), most frequent first, with their
    log-probabilities in the corpus and by the direct path. ValueError as in ``compare_with_corpus``, but counts may be
    of a single current token."""
    best: list[BigramPair] = []
    for rows in _rows_of_pairs(direct, counts, smoothing, block):
        least = best[-1].count if len(best) == k else 0
        most = rows.counts.flatten().topk(min(k, rows.counts.numel()))
        for n, i in zip(most.values.tolist(), most.indices.tolist(), strict=True):
            if n <= least:
                break
            row, out = divmod(i, rows.counts.shape[1])
            best.append(
                BigramPair(
                    token=int(rows.tokens[row]),
                    next=out,
                    count=round(n),
                    corpus_log_prob_nats=rows.corpus_log_prob[row, out].item(),
                    model_log_prob_nats=rows.model_log_prob[row, out].item(),
                )
            )
        best = sorted(best, key=lambda pair: -pair.count)[:k]
    return best


@dataclass(frozen=True)
class _Rows:
    """The rows of the bigram tables of the corpus and of the model for some current tokens."""

    tokens: Tensor
    counts: Float[Tensor, "source out"]
    smoothing: float
    unigram: Float[Tensor, "out"]  # P(next)
    direct: LowRank

    @cached_property
    def corpus_log_prob(self) -> Float[Tensor, "source out"]:
        total = self.counts.sum(-1, keepdim=True) + self.smoothing
        return ((self.counts + self.smoothing * self.unigram) / total).log()

    @cached_property
    def model_log_prob(self) -> Float[Tensor, "source out"]:
        return (self.direct.left @ self.direct.right[:, self.tokens]).mT.to(torch.float64).log_softmax(-1)


def _rows_of_pairs(direct: LowRank, counts: CountRows, smoothing: float, block: int) -> Iterator[_Rows]:
    """Yield the rows of all current tokens that occur, at most ``block`` at a time."""
    direct = checked(direct)
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
    unigram = following / following.sum()
    for start in range(0, n_tokens, block):
        some = counts[start : start + block].to(following)
        seen = some.sum(-1).nonzero().squeeze(-1)
        yield _Rows(seen + start, some[seen], smoothing, unigram, direct)


def _moments(rows: _Rows) -> Float[Tensor, "token kind"]:
    """Return, for each current token, the weighted sums of x², y², u², xy, yu and xu over its pairs. x is the
    log-probability by the direct path, y = log P(next | token) and u = log P(next), each minus its weighted mean."""
    row, out = rows.counts.nonzero(as_tuple=True)
    weight = rows.counts[row, out]

    def by_row(values: Tensor) -> Tensor:
        return weight.new_zeros(len(rows.tokens)).index_add(0, row, values)

    def centred(values: Tensor) -> Tensor:
        for _ in range(2):  # the softmax ignores a row's mean; the second time removes what rounding left of a constant
            values = values - (by_row(weight * values) / by_row(weight))[row]
        return values

    tables = rows.model_log_prob[row, out], rows.corpus_log_prob[row, out], rows.unigram.log()[out]
    x, y, u = map(centred, tables)
    return torch.stack([by_row(weight * a * b) for a, b in ((x, x), (y, y), (u, u), (x, y), (y, u), (x, u))], -1)


def _correlations(moments: Float[Tensor, "*n kind"]) -> Iterator[Tensor]:
    """Yield the correlations r_xy, r_yu and r_xu; 0 if either of the two tables is constant."""
    xx, yy, uu, xy, yu, xu = moments.unbind(-1)
    for ab, aa, bb in ((xy, xx, yy), (yu, yy, uu), (xu, xx, uu)):
        yield torch.where(torch.minimum(aa, bb) > FLAT_NATS**2, ab / (aa * bb).sqrt(), 0)
