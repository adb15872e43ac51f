"""Measure the loss reduction by orders of paths, layers and heads (docs/framework.md §2.6), and by single paths at
frozen norm scales and at their own (§2.7)."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.importance import importance, window_losses
from pathsum.circuits.paths import Path, all_paths, by_order, path_logits, path_name
from pathsum.config import ExtractConfig
from pathsum.core.weights import Weights
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.score_paths import constant_logits
from pathsum.interventions.run import Place, Run
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.paths import NormScaleRow, TermRow
from pathsum.records.registry import intervals
from pathsum.statistics.bootstrap import NO_INTERVAL, Columns, mean_intervals
from pathsum.statistics.rotation import random_rotation

WINDOWS, STEP = 12, 8  # losses at every eighth position, 32 per window, are enough for a mean
MOST_PATHS = 20  # largest number of pairs of heads (two layers of four heads have 16); more would take seconds
_SEED = 2027
Stream = Float[Tensor, "batch pos d_model"]
Scale = Float[Tensor, "batch pos"]


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``norm_scales``: one row per head, and one per pair if there are at most ``MOST_PATHS``."""
    model, heads, generator = trained.model, trained.places, torch.Generator().manual_seed(_SEED)
    if model.config.norm == "none" or not heads:
        return {"norm_scales": []}
    windows, documents = data.windows[:WINDOWS], data.window_documents[:WINDOWS]
    clean, targets = Run(model, windows[:, :-1]), windows[:, 1:]
    rotation, W_U = random_rotation(model.W_E.shape[0], generator).float(), model.weights().W_U
    pairs: list[Path] = [(a, b) for a, b in product(heads, heads) if a[0] < b[0]]
    paths: list[Path] = [*((head,) for head in heads), *(pairs if len(pairs) <= MOST_PATHS else [])]
    reductions = []
    for own in (False, True):
        scale = None if own else clean.trace.scales[-1]
        for path in paths:
            lower, added = joined(clean, path, own=own)
            losses = [_losses(model, x, scale, W_U, targets) for x in (lower, lower + added, lower + added @ rotation)]
            reductions.append(losses[0] - torch.stack(losses[1:]))
    reduction, control = torch.stack(reductions).unflatten(0, (2, -1)).unbind(2)  # scales × path × window
    found = [mean_intervals(values, documents, generator) for values in (*reduction, reduction[1] - reduction[0])]
    rows = [
        NormScaleRow(
            path=path_name(path),
            order=len(path),
            **intervals(frozen_nats=a, own_nats=b, difference_nats=c),
            frozen_control_nats=frozen_control,
            own_control_nats=own_control,
            windows=len(windows),
        )
        for path, a, b, c, (frozen_control, own_control) in zip(paths, *found, control.mean(-1).T.tolist(), strict=True)
    ]
    return {"norm_scales": rows}


def joined(clean: Run, path: Path, *, own: bool) -> tuple[Stream, Stream]:
    """Return the sum of the shorter paths through the heads of ``path``, and what ``path`` itself contributes."""
    heads, starts = list(path), [clean.streams[0]]  # before each layer, with what joins the embeddings
    for layer in range(1, len(clean.streams)):
        starts.append(clean.model.joined(starts[-1], layer))

    def scale(layer: int, read: Stream) -> Scale:
        return clean.model.normalise(read)[1] if own else clean.trace.scales[layer]

    def write(place: Place, x: Stream, scale: Scale) -> Stream:
        return clean.write(place, clean.pattern(place), x, scale)

    x = starts[heads[0][0]]
    first = write(heads[0], x, scale(heads[0][0], x))
    if len(heads) == 1:
        return starts[-1], first
    late, x = heads[1], starts[heads[1][0]]
    read_at = scale(late[0], x + first)
    alone = write(late, x, read_at)
    return starts[-1] + first + alone, write(late, x + first, read_at) - alone


def _losses(
    model: Transformer, x: Stream, scale: Scale | None, W_U: Float[Tensor, "vocab d_model"], targets: Tensor
) -> Float[Tensor, "batch"]:
    """Return the mean loss of each window over every eighth position if the residual stream ``x`` is unembedded."""
    scale = model.normalise(x)[1] if scale is None else scale
    some = slice(STEP - 1, None, STEP)
    return window_losses(F.linear((x * scale[..., None])[:, some], W_U, model.b_U), targets[:, some])


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
    constants = constant_logits(model, weights, trace.patterns, trace.scales)
    lower = [*itertools.accumulate(orders, initial=constants.expand_as(orders[0]))]
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
    own: Sequence[Columns] = [NO_INTERVAL] * len(orders)
    if model.constants(model.n_ctx) is None:  # else the first run would mix them in
        own_scale = reductions(model, clean.order_by_order(), window_losses(lower[0], targets), targets)
        own = mean_intervals(own_scale, documents, generator)
    return [
        TermRow(
            order=order,
            layer=layer,
            head=head,
            paths=paths,
            **intervals(added_nats=a, removed_nats=r, own_scale_nats=own[order] if layer is None else NO_INTERVAL),
            windows=len(tokens),
        )
        for (order, layer, head, paths), a, r in zip(terms, added, removed, strict=True)
    ]


def _terms(
    weights: Weights, tokens: Tensor, trace: Trace, orders: Sequence[Tensor]
) -> Iterator[tuple[Term, Float[Tensor, "batch pos vocab"]]]:
    """Yield the logits of all paths of each order, then of the single heads of each layer and of all its heads."""
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


def reductions(
    model: Transformer, reads: Iterable[Float[Tensor, "batch pos d_model"]], before: Tensor, targets: Tensor
) -> Float[Tensor, "step batch"]:
    """Return the loss reduction at each of ``reads``, normalized final streams; ``before`` is the loss without any."""
    losses = [window_losses(F.linear(read, model.W_U, model.b_U), targets) for read in reads]
    return -torch.stack([before, *losses]).diff(dim=0)
