"""Split attention scores into pairs of parts: one part of what is read at the query, and one of what is read at the key
(docs/framework.md §2.3 and §2.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.paths import exactness
from pathsum.circuits.score_paths import by_distance, contrasted, preference_contrast, score_sum, variance_contrast
from pathsum.config import ModelConfig
from pathsum.core.weights import Head
from pathsum.model.attention import Attention
from pathsum.model.positions import SCHEMES
from pathsum.model.transformer import Trace, Transformer
from pathsum.statistics.bootstrap import Interval, independent, ratio_interval, standard_errors

POSITION = "position"

Sides = tuple[
    Float[Tensor, "path_ batch pos d_head"], Float[Tensor, "path_ batch pos d_head"], Float[Tensor, "distance"]
]


@dataclass(frozen=True)
class Pair:
    """What one part at the query and one part at the key together contribute to a head's scores, by window."""

    layer: int
    head: int
    query: str
    key: str
    nats: Float[Tensor, "batch"]  # contribution to the preference (docs/framework.md §2.4)
    shares: Float[Tensor, "batch"]  # share of the variance of the scores over keys

    def share(self, whole: Float[Tensor, "batch"], generator: torch.Generator) -> Interval | None:
        """Return this pair's share of the head's ``whole`` preference, with its 95 % bootstrap interval over windows;
        None unless the mean of ``whole`` is positive. ValueError for a single window."""
        return ratio_interval(self.nats, whole, independent(whole), generator) if whole.mean() > 0 else None

    def summary(self) -> tuple[float, float, float]:
        """Return the mean contribution to the preference (nats), its standard error, and the mean share of variance."""
        error = standard_errors(self.nats[None], independent(self.nats)).item()
        return self.nats.mean().item(), error, self.shares.mean().item()


def pairs(
    model: Transformer, layer: int, parts: Float[Tensor, "path batch pos d_model"], names: Sequence[str], block: int
) -> Iterator[Pair]:
    """Yield, for each head of ``layer``, what each pair of ``parts`` (query side, key side) contributes to its
    scores."""
    names, preference = [*names, POSITION], preference_contrast(block).expand(parts.shape[1], -1, -1)
    for h, head in enumerate(model.weights().layers[layer]):
        queries, keys, bias = sides(model.attention(layer), h, head, parts)
        from_bias = by_distance(bias)
        variance = variance_contrast(queries.sum(0) @ keys.sum(0).mT + from_bias, block + 1)
        nats, shares = (contrasted(queries, keys, contrast) for contrast in (preference, variance))
        for q, k in product(range(len(queries)), range(len(keys))):
            yield Pair(layer, h, names[q], names[k], nats[q, k], shares[q, k])
        if bias.any():
            nat, share = ((contrast * from_bias).sum((-2, -1)) for contrast in (preference, variance))
            yield Pair(layer, h, POSITION, POSITION, nat, share)


def score_errors(
    model: Transformer, trace: Trace, layer: int, parts: Float[Tensor, "path batch pos d_model"]
) -> list[float]:
    """Return, for each head of ``layer``, the relative error of log A (the logarithm of its pattern) if scores are
    computed as sums over pairs of parts (docs/framework.md §2.2)."""
    future = torch.ones(parts.shape[2], parts.shape[2], dtype=torch.bool).triu(1)
    errors = []
    heads = zip(model.weights().layers[layer], trace.patterns[layer].unbind(1), strict=True)
    for h, (head, pattern) in enumerate(heads):
        scores = score_sum(*sides(model.attention(layer), h, head, parts))
        ours = scores.masked_fill(future, -math.inf).log_softmax(-1)
        errors.append(exactness(ours[pattern > 0], pattern[pattern > 0].log()))
    return errors


def add_up(model: ModelConfig) -> bool:
    """Return whether attention scores can be split into pairs of parts."""
    return SCHEMES[model.positions].bilinear and not model.smeared_keys


def sides(attention: Attention, h: int, head: Head, parts: Float[Tensor, "path batch pos d_model"]) -> Sides:
    """Return the queries and the keys of each part, and the position bias by distance, for head ``h`` of a layer."""
    if not attention.bilinear or attention.smear is not None:
        raise ValueError(
            "expected positions that add to what heads read or to scores, got rotary positions or smeared keys; such "
            "scores are not a bilinear function of what is read, with one W_QK for all pairs of positions"
        )
    pos, W_Q, W_K = parts.shape[2], attention.W_Q[h], attention.W_K[h]
    vectors = attention.position_vectors(pos)[:, None].expand(-1, *parts.shape[1:])
    # Position vectors are added after the norm, which does not center them.
    queries = torch.cat([parts @ head.W_QK.left, vectors @ W_Q.mT / math.sqrt(len(W_Q))])
    keys = torch.cat([parts @ head.W_QK.right.mT, vectors @ W_K.mT])
    return queries, keys, attention.position_bias(pos)[h]
