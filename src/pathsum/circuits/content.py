"""Expansion of the residual stream by content: how often it moved, and how far back it comes from.

With frozen patterns and norm scales, each path is a sum over routes k = p_0 ≤ p_1 ≤ … ≤ p_n = q, one position per head
(docs/framework.md §2.5). A route has

    hops    #{i : p_i > p_{i−1}}, the number of heads at which it changes position;
    offset  q − k: 0 is the current token, 1 the previous one.

Every route is in exactly one group of each kind, so groups sum to the stream, as paths do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.paths import Patterns, Scales, check_frozen
from pathsum.core.weights import Head, Weights

Normalise = Callable[[Float[Tensor, "batch pos d_model"]], Float[Tensor, "batch pos d_model"]]
HOPS, OFFSET, BOS = "hops", "offset", "BOS"


@dataclass(frozen=True)
class Grouping:
    """Groups of routes, and the group that a move by each distance leads to."""

    kind: str
    names: tuple[str, ...]
    start: Int[Tensor, "pos"]  # the group of a token's own embedding, by position
    moved: Int[Tensor, "group distance"]  # the group of content of a group after a move by query − key


def by_hops(n_layers: int, pos: int) -> Grouping:
    """Group routes by the number of heads at which they change position: 0, 1, …, n_layers."""
    moved = torch.arange(n_layers + 1).unsqueeze(-1) + (torch.arange(pos) > 0)
    names = tuple(str(n) for n in range(n_layers + 1))
    return Grouping(HOPS, names, torch.zeros(pos, dtype=torch.int64), moved.clamp(max=n_layers))


def by_offset(pos: int, exact: int = 3) -> Grouping:
    """Group routes by how far back their token is: 0, 1, …, exact − 1, further. The first position, the attention
    sink, is a separate group at any offset."""
    offsets = (torch.arange(exact + 1).unsqueeze(-1) + torch.arange(pos)).clamp(max=exact)
    moved = torch.cat([offsets, torch.full((1, pos), exact + 1)])
    start = torch.where(torch.arange(pos) == 0, exact + 1, 0)
    return Grouping(OFFSET, (*(str(d) for d in range(exact)), f"{exact}+", BOS), start, moved)


def reads(
    weights: Weights, tokens: Int[Tensor, "batch pos"], patterns: Patterns, scales: Scales, grouping: Grouping
) -> Iterator[Float[Tensor, "group batch pos d_model"]]:
    """Yield what each layer reads, then what the unembedding reads, by group: s_l S_g with
    S_g ← S_g + Σ_h Σ_{g'} A^h[moves from g' to g] s_l S_g' W_OVᵀ. The groups add up to the normalized stream.

    Costs layers · pairs of groups · batch · heads · pos² · d_head. ValueError where patterns or scales do not match the
    layers."""
    check_frozen(weights, patterns, scales)
    embedded, pos, groups = weights.W_E.mT[tokens], torch.arange(tokens.shape[1]), torch.arange(len(grouping.names))
    leads_to = grouping.moved[:, (pos.unsqueeze(-1) - pos).clamp(min=0)]  # from query key
    x = (grouping.start == groups.unsqueeze(-1))[:, None, :, None] * embedded
    for heads, pattern, scale in zip(weights.layers, patterns, scales[:-1], strict=True):
        read = scale.unsqueeze(-1) * x
        yield read
        x = x.clone()
        for source, content in enumerate(read):
            for target in leads_to[source].unique() if content.any() else ():
                x[target] += write(heads, pattern * (leads_to[source] == target), content)
    yield scales[-1].unsqueeze(-1) * x


def hop_by_hop(
    weights: Weights, tokens: Int[Tensor, "batch pos"], patterns: Patterns, normalise: Normalise
) -> list[Float[Tensor, "batch pos d_model"]]:
    """Compute the final residual stream with routes of at most 0, 1, 2, … hops. Patterns are frozen, and norms take the
    scale of these routes (docs/framework.md §2.7).

    Without a norm this is the running sum of ``reads`` by hops. The last one is the model's. Costs 2 · n_layers²
    layers."""
    diagonals = [pattern * torch.eye(tokens.shape[1], device=pattern.device) for pattern in patterns]
    ends, fewer = [], [torch.zeros_like(weights.W_E.mT[tokens])] * len(weights.layers)
    for _ in range(len(weights.layers) + 1):
        x, here = weights.W_E.mT[tokens], []
        for heads, pattern, diagonal, less in zip(weights.layers, patterns, diagonals, fewer, strict=True):
            here.append(normalise(x))
            x = x + write(heads, diagonal, here[-1]) + write(heads, pattern - diagonal, less)
        ends.append(normalise(x))
        fewer = here
    return ends


def write(
    heads: Sequence[Head], pattern: Float[Tensor, "batch head query key"], read: Float[Tensor, "batch pos d_model"]
) -> Float[Tensor, "batch pos d_model"]:
    """Sum the writes of a layer under given patterns, Σ_h A^h x W_OVᵀ. Costs batch · heads · pos² · d_head."""
    W_V, W_O = torch.stack([h.W_V for h in heads]), torch.cat([h.W_O for h in heads], -1)
    mixed = pattern @ (read.unsqueeze(1) @ W_V.mT)
    return mixed.transpose(1, 2).flatten(2) @ W_O.mT
