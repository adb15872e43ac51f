"""Measure the attention to the beginning-of-sequence token (BOS), and the loss without it (docs/framework.md §5.15)."""

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
from pathsum.records.registry import intervals
from pathsum.statistics.bootstrap import mean_intervals

WINDOWS, STEP = 12, 2  # losses at every second position are enough for a mean
TRIALS = {"silenced": (silenced, 0), "forbidden": (forbidden, 0), "control": (forbidden, 1)}  # change, and removed key
_SEED = 2026


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``attention_sinks``: one row per head, and one for all heads of each layer with several."""
    generator = torch.Generator().manual_seed(_SEED)
    windows, documents = data.windows[:WINDOWS], data.window_documents[:WINDOWS]
    clean = Run(trained.model, windows[:, :-1])
    if not clean.places:
        return {"attention_sinks": []}
    layers = [[(layer, h) for h in range(p.shape[1])] for layer, p in enumerate(clean.trace.patterns)]
    sets = [some for heads in layers for some in (*([h] for h in heads), *([heads] if len(heads) > 1 else []))]
    before = _losses(clean, [], "control", windows)
    costs = [torch.stack([_losses(clean, heads, name, windows) - before for heads in sets]) for name in TRIALS]
    shares = [by_window(bos, pattern) for pattern in clean.trace.patterns]
    attention = torch.stack([shares[heads[0][0]][[h for _, h in heads]].mean(0) for heads in sets])
    silent, forbid, control, attend = (mean_intervals(x, documents, generator) for x in (*costs, attention))
    chance = uniform_share(windows.shape[1] - 1)
    rows = [
        AttentionSinkRow(
            layer=heads[0][0],
            head=heads[0][1] if len(heads) == 1 else None,
            chance=chance,
            **intervals(attention=a, silenced_nats=s, forbidden_nats=f, control_nats=c),
            windows=len(windows),
        )
        for heads, a, s, f, c in zip(sets, attend, silent, forbid, control, strict=True)
    ]
    return {"attention_sinks": rows}


def _losses(
    run: Run, heads: Sequence[Place], trial: str, windows: Int[Tensor, "batch window"]
) -> Float[Tensor, "batch"]:
    """Return the mean loss of each window over every second position if ``trial`` changes the patterns of ``heads``."""
    change, key = TRIALS[trial]
    for head in heads:
        run = run.force_pattern(head, change(run.pattern(head), key))
    return window_losses(run.logits(slice(STEP - 1, None, STEP)), windows[:, STEP::STEP])
