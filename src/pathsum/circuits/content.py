"""Split the residual stream by content: how far back a token comes from, and how often heads moved it.

With frozen patterns and norm scales, each path is a sum over routes. A route takes the token at position k to position
q, with one position per head on the way: k = p_0 ≤ p_1 ≤ … ≤ p_n = q (docs/framework.md §2.5). A route has

    hops    #{i : p_i > p_{i−1}}, the number of heads at which it changes position;
    offset  q − k, the distance back to its token: 0 is the current token, 1 the previous token.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.paths import Patterns, Scales, check_frozen, write
from pathsum.core.weights import Weights

Normalise = Callable[[Float[Tensor, "batch pos d_model"]], Float[Tensor, "batch pos d_model"]]
HOPS, OFFSET, BOS = "hops", "offset", "BOS"


@dataclass(frozen=True)
class Grouping:
    """A partition of routes into groups: the group in which a route starts, and its group after each head."""

    kind: str  # HOPS or OFFSET
    names: tuple[str, ...]  # of the groups
    start: Int[Tensor, "pos"]  # group of the embedding at each position, before any move
    moved: Int[Tensor, "group distance"]  # group after a move by query − key (column), from each group (row)


def by_hops(n_layers: int, pos: int) -> Grouping:
    """Group routes by hops, the number of heads at which they change position: 0, 1, …, ``n_layers``.

    For inputs of ``pos`` positions. See docs/framework.md §2.5."""
    moved = torch.arange(n_layers + 1).unsqueeze(-1) + (torch.arange(pos) > 0)
    names = tuple(str(n) for n in range(n_layers + 1))
    return Grouping(HOPS, names, torch.zeros(pos, dtype=torch.int64), moved.clamp(max=n_layers))


def by_offset(pos: int, exact: int = 3) -> Grouping:
    """Group routes by the distance back to their token: 0, 1, …, ``exact`` − 1, and all larger offsets together.

    For inputs of ``pos`` positions. Routes that start at position 0 form a separate group at any offset, because its
    token, the beginning-of-sequence token (BOS), is often an attention sink. See docs/framework.md §2.5."""
    offsets = (torch.arange(exact + 1).unsqueeze(-1) + torch.arange(pos)).clamp(max=exact)
    moved = torch.cat([offsets, torch.full((1, pos), exact + 1)])
    start = torch.where(torch.arange(pos) == 0, exact + 1, 0)
    return Grouping(OFFSET, (*(str(d) for d in range(exact)), f"{exact}+", BOS), start, moved)


def reads(
    weights: Weights, tokens: Int[Tensor, "batch pos"], patterns: Patterns, scales: Scales, grouping: Grouping
) -> Iterator[Float[Tensor, "group batch pos d_model"]]:
    """Yield what each layer reads, and then what the unembedding reads, split by the groups of ``grouping``.

    S_g is the part of the residual stream in group g. Layer l reads s_l S_g. It then changes S_g to
    S_g + Σ_h Σ_{g'} A^h[moves from g' to g] s_l S_g' (W_OV^h)ᵀ. The groups add up to the normalized residual stream,
    without the centering of a LayerNorm, which is folded into ``weights``. ValueError as in ``check_frozen``, raised
    with the first item. See docs/framework.md §2.5."""
    check_frozen(weights, patterns, scales)
    embedded, pos, groups = weights.W_E.mT[tokens], torch.arange(tokens.shape[1]), torch.arange(len(grouping.names))
    leads_to = grouping.moved[:, (pos.unsqueeze(-1) - pos).clamp(min=0)]  # [group before the move, query, key]
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
    weights: Weights,
    tokens: Int[Tensor, "batch pos"],
    patterns: Patterns,
    normalise: Normalise,
) -> list[Float[Tensor, "batch pos d_model"]]:
    """Return the final normalized residual stream of the routes with at most 0, 1, …, n_layers hops, one tensor each.

    Patterns are frozen. ``normalise`` applies the model's norm, with the scale of these routes alone. Without a norm,
    the results are the cumulative sums of the groups ``by_hops`` in the last item of ``reads``. The last result is the
    model's own stream. Costs as much as 2 · n_layers · (n_layers + 1) layers. ValueError unless there is one pattern
    per layer. See docs/framework.md §2.7."""
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
