"""Measure the loss reduction by each path of one or two heads, at the whole model's norm scales and at its own scales.

A path is added to the shorter paths through its heads: for one head the direct path, for two the direct path and both
single-head paths. With frozen scales, each norm divides by the size of the whole residual stream. With own scales, it
divides by the size of these paths alone. "Term importance" in A Mathematical Framework for Transformer Circuits (AMF)
uses own scales, order by order. See docs/framework.md §2.7.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.importance import window_losses
from pathsum.circuits.paths import Path, path_name
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Place, Run
from pathsum.model.transformer import Transformer
from pathsum.records.paths import NormScaleRow
from pathsum.statistics.bootstrap import mean_intervals
from pathsum.statistics.rotation import random_rotation

WINDOWS, STEP = 12, 8  # losses at every eighth position, 32 per window, are enough for a mean
MOST_PATHS = 20  # largest number of pairs of heads (two layers of four heads have 16); more would take seconds
_SEED = 2027
Stream = Float[Tensor, "batch pos d_model"]
Scale = Float[Tensor, "batch pos"]


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``norm_scales``: one row per head, and one per pair of heads if there are at most
    ``MOST_PATHS`` (20) pairs."""
    model, heads, generator = trained.model, trained.places, torch.Generator().manual_seed(_SEED)
    if model.config.norm == "none" or not heads:
        return {"norm_scales": []}
    windows, documents = data.windows[:WINDOWS], data.window_documents[:WINDOWS]
    clean, targets = Run(model, windows[:, :-1]), windows[:, 1:]
    rotation, W_U = random_rotation(model.W_E.shape[0], generator).float(), model.weights().W_U
    pairs: list[Path] = [(a, b) for a, b in product(heads, heads) if a[0] < b[0]]
    paths: list[Path] = [*((head,) for head in heads), *(pairs if len(pairs) <= MOST_PATHS else [])]
    frozen: list[Tensor] = []
    own: list[Tensor] = []
    for path in paths:
        for at_own_scale, found in ((False, frozen), (True, own)):
            lower, added = joined(clean, path, own=at_own_scale)
            scale = None if at_own_scale else clean.trace.scales[-1]
            losses = [_losses(model, x, scale, W_U, targets) for x in (lower, lower + added, lower + added @ rotation)]
            found.append(losses[0] - torch.stack(losses[1:]))
    reduction, control = torch.stack([torch.stack(frozen), torch.stack(own)]).unbind(2)  # scales × path × window
    intervals = [mean_intervals(values, documents, generator) for values in (*reduction, reduction[1] - reduction[0])]
    controls = control.mean(-1).T.tolist()
    rows = []
    for path, frozen_nats, own_nats, difference, both in zip(paths, *intervals, controls, strict=True):
        numbers: Any = (*frozen_nats, *own_nats, *difference, *both, len(windows))
        rows.append(NormScaleRow(path_name(path), len(path), *numbers))
    return {"norm_scales": rows}


def joined(clean: Run, path: Path, *, own: bool) -> tuple[Stream, Stream]:
    """Return two parts of the residual stream before the final norm: the sum of the shorter paths through the heads of
    ``path``, and what ``path`` itself contributes."""
    x, heads = clean.streams[0], list(path)

    def scale(layer: int, read: Stream) -> Scale:
        return clean.model.normalise(read)[1] if own else clean.trace.scales[layer]

    def write(place: Place, x: Stream, scale: Scale) -> Stream:
        return clean.write(place, clean.pattern(place), x, scale)

    first = write(heads[0], x, scale(heads[0][0], x))
    if len(heads) == 1:
        return x, first
    late = heads[1]
    read_at = scale(late[0], x + first)
    return x + first + write(late, x, read_at), write(late, first, read_at)


def _losses(
    model: Transformer, x: Stream, scale: Scale | None, W_U: Float[Tensor, "vocab d_model"], targets: Tensor
) -> Float[Tensor, "batch"]:
    """Return the mean loss of each window over every eighth position if the residual stream ``x`` is unembedded, in
    nats per token."""
    scale = model.normalise(x)[1] if scale is None else scale
    some = slice(STEP - 1, None, STEP)
    return window_losses(F.linear((x * scale[..., None])[:, some], W_U), targets[:, some])
