"""Measure how much heads attend to the beginning-of-sequence token (BOS, an attention sink), and how the loss changes
without this attention (docs/framework.md §5.15).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.attention_sinks import forbidden, silenced, uniform_share
from pathsum.behavior.labels import by_window
from pathsum.behavior.positional import bos
from pathsum.circuits.importance import window_losses
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Place, Run
from pathsum.records.ablations import AttentionSinkRow
from pathsum.statistics.bootstrap import mean_intervals

WINDOWS, STEP = 12, 2  # losses at every second position are enough for a mean
TRIALS = {"silenced": (silenced, 0), "forbidden": (forbidden, 0), "control": (forbidden, 1)}  # change, and removed key
_SEED = 2026


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``attention_sinks``: one row per head and, for each layer with several heads, one row for all
    of them together."""
    generator = torch.Generator().manual_seed(_SEED)
    windows, documents = data.windows[:WINDOWS], data.window_documents[:WINDOWS]
    clean = Run(trained.model, windows[:, :-1])
    sets = [heads for layer, p in enumerate(clean.trace.patterns) for heads in _sets(layer, p.shape[1])]
    if not sets:
        return {"attention_sinks": []}
    before = _losses(clean, [], "control", windows)
    costs = [torch.stack([_losses(clean, heads, name, windows) - before for heads in sets]) for name in TRIALS]
    shares = [by_window(bos, pattern) for pattern in clean.trace.patterns]
    attention = torch.stack([shares[heads[0][0]][[h for _, h in heads]].mean(0) for heads in sets])
    silent, forbid, control, attend = (mean_intervals(x, documents, generator) for x in (*costs, attention))
    chance = uniform_share(windows.shape[1] - 1)
    rows = []
    for heads, a, s, f, c in zip(sets, attend, silent, forbid, control, strict=True):
        layer, head = heads[0]
        place = (layer, head if len(heads) == 1 else None)
        rows.append(AttentionSinkRow(*place, *a, chance, *s, *f, *c, len(windows)))
    return {"attention_sinks": rows}


def _sets(layer: int, n_heads: int) -> list[list[Place]]:
    """Return the sets of heads of a layer that are changed together: each head alone, and all heads if there are
    several."""
    heads = [(layer, h) for h in range(n_heads)]
    return [*([head] for head in heads), *([heads] if n_heads > 1 else [])]


def _losses(
    run: Run, heads: Sequence[Place], trial: str, windows: Int[Tensor, "batch window"]
) -> Float[Tensor, "batch"]:
    """Return the mean loss of each window over every second position if ``trial`` changes the patterns of ``heads``, in
    nats per token."""
    change, key = TRIALS[trial]
    for head in heads:
        run = run.force_pattern(head, change(run.pattern(head), key))
    return window_losses(run.logits(slice(STEP - 1, None, STEP)), windows[:, STEP::STEP])
