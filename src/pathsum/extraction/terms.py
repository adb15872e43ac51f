"""Measure the loss reduction by each order of paths (docs/framework.md §2.6 and §2.7)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.importance import importance, window_losses
from pathsum.circuits.paths import all_paths, by_order, path_logits
from pathsum.core.weights import Weights
from pathsum.interventions.run import Run
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.paths import TermRow
from pathsum.statistics.bootstrap import NO_INTERVAL, Interval, mean_intervals

Term = tuple[int, int | None, int | None, int]  # order, layer, head and number of paths


def term_rows(
    model: Transformer,
    clean: Run,
    windows: Int[Tensor, "batch window"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
) -> list[TermRow]:
    """Measure the loss reduction by each order of paths and, within order 1, by each layer and each head."""
    weights, trace, tokens, targets = model.weights(), clean.trace, windows[:, :-1], windows[:, 1:]
    orders = by_order(weights, tokens, trace.patterns, trace.scales)
    lower = [torch.zeros_like(orders[0]), *itertools.accumulate(orders)]
    terms: list[Term] = []
    added_first: list[list[float]] = []  # Python numbers: small tensors would fragment memory (``causal.Measured``)
    removed_last: list[list[float]] = []
    for term, logits in _terms(weights, tokens, trace, orders):
        terms.append(term)
        found = importance(logits, lower[term[0]], lower[-1], targets)
        added_first.append(found.added_first.tolist())
        removed_last.append(found.removed_last.tolist())
    added = mean_intervals(lower[0].new_tensor(added_first), documents, generator)
    removed = mean_intervals(lower[0].new_tensor(removed_last), documents, generator)
    own = _at_own_scale(model, clean, targets, documents, generator)
    return [
        TermRow(*term, *a, *r, *(own[term[0]] if term[1] is None else NO_INTERVAL), windows=len(tokens))
        for term, a, r in zip(terms, added, removed, strict=True)
    ]


def _terms(
    weights: Weights, tokens: Tensor, trace: Trace, orders: Sequence[Tensor]
) -> Iterator[tuple[Term, Float[Tensor, "batch pos vocab"]]]:
    """Yield the logits of all paths of each order, then of the single heads of each layer and of all heads of that
    layer together."""
    lengths = [len(path) for path in all_paths(weights)]
    for n, logits in enumerate(orders):
        yield (n, None, None, lengths.count(n)), logits
    for layer, heads in enumerate(weights.layers):
        total = torch.zeros_like(orders[0])
        for h in range(len(heads)):
            logits = path_logits(weights, ((layer, h),), tokens, trace.patterns, trace.scales)
            yield (1, layer, h, 1), logits
            total += logits
        yield (1, layer, None, len(heads)), total


def _at_own_scale(
    model: Transformer, clean: Run, targets: Tensor, documents: Tensor, generator: torch.Generator
) -> list[Interval]:
    """Measure the loss reduction by each order of paths, with the norm scales of the paths up to that order
    (docs/framework.md §2.7)."""
    losses = [window_losses(F.linear(read, model.W_U), targets) for read in clean.order_by_order()]
    nothing = torch.full_like(losses[0], math.log(len(model.W_U)))
    return mean_intervals(-torch.stack([nothing, *losses]).diff(dim=0), documents, generator)
