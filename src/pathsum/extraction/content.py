"""Split logits by hops and by the offset of their content, and attention scores by offset (docs/framework.md §2.5)."""

import copy
import itertools
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.content import HOPS, Grouping, by_hops, by_offset, hop_by_hop, reads
from pathsum.circuits.importance import window_losses
from pathsum.circuits.paths import exactness
from pathsum.config import ExtractConfig
from pathsum.extraction.causal import WINDOWS
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.norm_scales import reductions
from pathsum.extraction.score_paths import add_up, constant_logits, pairs, score_errors
from pathsum.model.transformer import Transformer
from pathsum.records.paths import ContentRow, ContentScoreRow
from pathsum.records.registry import intervals
from pathsum.statistics.bootstrap import NO_INTERVAL, Columns, mean_intervals

CHUNK = 16  # windows whose logits, one set per group, are in memory at the same time
_SEED = 2021

Errors = dict[tuple[int, int], float]  # largest relative error, by layer and head


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``content`` and ``content_scores``."""
    model = trained.model
    error, by_head = group_errors(copy.deepcopy(model).double(), data.windows[: config.exactness_windows, :-1])
    rows = [
        row
        for grouping, n in zip(groupings(model, data.windows.shape[1] - 1), (len(data.windows), WINDOWS), strict=True)
        for row in content_rows(trained, grouping, data.windows[:n], data.window_documents[:n], error)
    ]
    return {"content": rows, "content_scores": score_rows(trained, by_head) if add_up(model) else []}


def groupings(model: Transformer, pos: int) -> tuple[Grouping, Grouping]:
    return by_hops(model.config.n_layers, pos), by_offset(pos)


def content_rows(
    trained: TrainedModel,
    grouping: Grouping,
    windows: Int[Tensor, "batch window"],
    documents: Int[Tensor, "batch"],
    error: float,
) -> list[ContentRow]:
    """Measure the loss reduction by each group, added to the groups before it and removed from all groups."""
    parts = [_reductions(trained, grouping, slice(at, at + CHUNK), windows) for at in range(0, len(windows), CHUNK)]
    generator = torch.Generator().manual_seed(_SEED)
    added, removed, *own = (
        mean_intervals(torch.cat(some, -1), documents, generator) for some in zip(*parts, strict=True)
    )
    scaled: Sequence[Columns] = own[0] if own else [NO_INTERVAL] * len(added)
    return [
        ContentRow(
            kind=grouping.kind,
            content=name,
            **intervals(added_nats=a, removed_nats=r, own_scale_nats=o),
            windows=len(windows),
            exactness=error,
        )
        for name, a, r, o in zip(grouping.names, added, removed, scaled, strict=True)
    ]


def _reductions(
    trained: TrainedModel, grouping: Grouping, some: slice, windows: Int[Tensor, "batch window"]
) -> list[Float[Tensor, "group n"]]:
    """Return the loss reductions in ``some`` windows: added, removed and, for hops and without constants, added at own
    norm scales."""
    trace, weights = trained.natural, trained.model.weights()
    tokens, targets = windows[some, :-1], windows[some, 1:]
    patterns, scales = ([values[: len(windows)][some] for values in kind] for kind in (trace.patterns, trace.scales))
    *_, end = reads(weights, tokens, patterns, scales, grouping)
    parts = F.linear(end, weights.W_U)
    constants = constant_logits(trained.model, weights, patterns, scales)
    lower = [*itertools.accumulate(parts, initial=constants.expand_as(parts[0]))]
    losses = [window_losses(logits, targets) for logits in lower]
    without = torch.stack([window_losses(lower[-1] - part, targets) for part in parts])
    found = [-torch.stack(losses).diff(dim=0), without - losses[-1]]
    if grouping.kind == HOPS and not trained.has_constants:
        ends = hop_by_hop(weights, tokens, patterns, lambda x: trained.model.normalise(x)[0])
        found.append(reductions(trained.model, ends, losses[0], targets))
    return found


def score_rows(trained: TrainedModel, errors: Errors) -> list[ContentScoreRow]:
    """Split the attention scores of every head past the first layer by offset, on repeated random tokens."""
    model, tokens, trace = trained.model, trained.repeated_tokens, trained.repeated
    grouping = by_offset(tokens.shape[1])
    layers = reads(model.weights(), tokens, trace.patterns, trace.scales, grouping)
    found = [
        pair
        for layer, parts in enumerate(itertools.islice(layers, model.config.n_layers))
        if layer
        for pair in pairs(model, trace, layer, parts, grouping.names, trained.block)
    ]
    generator = torch.Generator().manual_seed(_SEED)
    whole = {place: torch.stack([p.nats for p in found if p.place == place]).sum(0) for place in errors}
    rows = []
    for p in found:
        _, low, high = p.share(whole[p.place], generator) or NO_INTERVAL
        rows.append(ContentScoreRow(**p.columns(), exactness=errors[p.place], share_low=low, share_high=high))
    return rows


@torch.no_grad()
def group_errors(model: Transformer, tokens: Int[Tensor, "batch pos"]) -> tuple[float, Errors]:
    """Measure how exactly the groups by hops and by offset add up to the logits and to log A past the first layer."""
    trace, weights, logits = model.trace(tokens), model.weights(), 0.0
    errors: Errors = {}
    for grouping in groupings(model, tokens.shape[1]):
        *layers, end = reads(weights, tokens, trace.patterns, trace.scales, grouping)
        constants = constant_logits(model, weights, trace.patterns, trace.scales)
        logits = max(logits, exactness(F.linear(end, weights.W_U).sum(0) + constants, trace.logits))
        for layer in range(1, len(layers) if add_up(model) else 0):
            for h, error in enumerate(score_errors(model, trace, layer, layers[layer])):
                errors[layer, h] = max(error, errors.get((layer, h), 0.0))
    return logits, errors
