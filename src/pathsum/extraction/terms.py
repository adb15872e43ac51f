"""What each order of paths is worth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.importance import importance, window_losses
from pathsum.circuits.paths import all_paths, by_order, path_logits
from pathsum.core.weights import Weights
from pathsum.interventions.run import Run
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.terms import TermRow
from pathsum.statistics.bootstrap import Interval, mean_intervals


@dataclass(frozen=True)
class Term:
    """Some paths, and what they add to the logits."""

    order: int
    layer: int | None
    head: int | None
    paths: int
    logits: Float[Tensor, "batch pos vocab"]


def term_rows(
    model: Transformer,
    clean: Run,
    windows: Int[Tensor, "batch window"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
) -> list[TermRow]:
    """What each order is worth, and of order one each layer and each head; ``clean`` is the run on
    these ``windows``, which come from these ``documents``."""
    weights, trace, tokens, targets = model.weights(), clean.trace, windows[:, :-1], windows[:, 1:]
    orders = by_order(weights, tokens, trace.patterns, trace.scales)
    lower = [torch.zeros_like(orders[0]), *itertools.accumulate(orders)]
    named: list[tuple[int, int | None, int | None, int]] = []
    added_first: list[list[float]] = []  # numbers: why, see ``causal.Measured``
    removed_last: list[list[float]] = []
    for term in _terms(weights, tokens, trace, orders):
        named.append((term.order, term.layer, term.head, term.paths))
        worth = importance(term.logits, lower[term.order], lower[-1], targets)
        added_first.append(worth.added_first.tolist())
        removed_last.append(worth.removed_last.tolist())
    added = mean_intervals(lower[0].new_tensor(added_first), documents, generator)
    removed = mean_intervals(lower[0].new_tensor(removed_last), documents, generator)
    own = _at_own_scale(model, clean, targets, documents, generator)
    rows = []
    for name, a, r in zip(named, added, removed, strict=True):
        o = own[name[0]] if name[1] is None else None
        row = TermRow(
            *name,
            *(a.mean, a.low, a.high),
            *(r.mean, r.low, r.high),
            own_scale_nats=o.mean if o else None,
            own_scale_low=o.low if o else None,
            own_scale_high=o.high if o else None,
            windows=len(tokens),
        )
        rows.append(row)
    return rows


def _terms(weights: Weights, tokens: Tensor, trace: Trace, orders: Sequence[Tensor]) -> Iterator[Term]:
    """All paths of each order; then the single heads, by layer, and each layer's together."""
    lengths = [len(p) for p in all_paths(weights)]
    for n, logits in enumerate(orders):
        yield Term(n, None, None, lengths.count(n), logits)
    for layer, heads in enumerate(weights.layers):
        total = torch.zeros_like(orders[0])
        for h in range(len(heads)):
            logits = path_logits(weights, ((layer, h),), tokens, trace.patterns, trace.scales)
            yield Term(1, layer, h, 1, logits)
            total += logits
        yield Term(1, layer, None, len(heads), total)


def _at_own_scale(
    model: Transformer, clean: Run, targets: Tensor, documents: Tensor, generator: torch.Generator
) -> list[Interval]:
    """What each order adds where norms see the paths so far alone."""
    losses = [window_losses(F.linear(read, model.W_U), targets) for read in clean.order_by_order()]
    nothing = torch.full_like(losses[0], math.log(len(model.W_U)))
    return mean_intervals(-torch.stack([nothing, *losses]).diff(dim=0), documents, generator)
