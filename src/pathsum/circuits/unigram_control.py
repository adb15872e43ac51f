"""The unigram control for the correlation of the direct path with bigrams.

A table of token frequencies alone correlates with log P(next | token), so chance is not 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.bigram import FLAT_NATS, CountRows, Rows, centred, rows_of_pairs
from pathsum.core.lowrank import LowRank
from pathsum.statistics.bootstrap import independent, resampled_means

ROUNDING = 1e-9  # of √((1 − r²)(1 − r′²)): tables that differ by less differ by rounding alone


@dataclass(frozen=True)
class UnigramControl:
    """Correlations with the corpus's log P(next | token), all weighted and centred as in ``compare_with_corpus``."""

    unigram: float  # of log P(next), which ignores the current token; −1..1
    excess_low: float  # 95 % bootstrap over current tokens of the direct path's correlation minus the unigram's
    excess_high: float
    partial: float  # of the direct path with log P(next) held constant; 0 for a unigram model, −1..1


def unigram_control(
    direct: LowRank, counts: CountRows, smoothing: float, generator: torch.Generator, block: int = 256
) -> UnigramControl:
    """Compare the direct path's correlation with the corpus's bigrams with that of the unigram alone.
    docs/framework.md §3.2.

    The partial correlation is (r_xy − r_xu r_yu) / √((1 − r_xu²)(1 − r_yu²)) for x the direct path, y = log P(next |
    token), u = log P(next). Costs and errors as ``compare_with_corpus``.
    """
    moments = torch.cat([_moments(rows) for rows in rows_of_pairs(direct, counts, smoothing, block)])
    r_xy, r_yu, r_xu = _correlations(moments.sum(0))
    drawn_xy, drawn_yu, _ = _correlations(resampled_means(moments.mT, independent(moments.mT), generator).mT)
    low, high = torch.quantile(drawn_xy - drawn_yu, drawn_xy.new_tensor([0.025, 0.975])).tolist()
    left = ((1 - r_xu**2) * (1 - r_yu**2)).clamp(min=0).sqrt()
    partial = torch.where(left > ROUNDING, (r_xy - r_xu * r_yu) / left, 0)
    return UnigramControl(r_yu.item(), low, high, partial.item())


def _moments(rows: Rows) -> Float[Tensor, "token kind"]:
    """Return for each current token the weighted sums of x², y², u², xy, yu and xu over its pairs."""
    weight = rows.counts
    x = centred(rows.model_log_prob, weight)
    y, u = (centred(table.where(weight > 0, 0), weight) for table in (rows.corpus_log_prob, rows.unigram_log_prob))
    return torch.stack([(weight * a * b).sum(-1) for a, b in ((x, x), (y, y), (u, u), (x, y), (y, u), (x, u))], -1)


def _correlations(sums: Float[Tensor, "*n kind"]) -> tuple[Tensor, Tensor, Tensor]:
    """Return r_xy, r_yu and r_xu; 0 where one of the two is flat."""
    xx, yy, uu, xy, yu, xu = sums.unbind(-1)

    def correlation(ab: Tensor, aa: Tensor, bb: Tensor) -> Tensor:
        return torch.where(torch.minimum(aa, bb) > FLAT_NATS**2, ab / (aa * bb).sqrt(), 0)

    return correlation(xy, xx, yy), correlation(yu, yy, uu), correlation(xu, xx, uu)
