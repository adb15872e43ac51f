"""The losses on single held-out tokens through training."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy

from pathsum.config import ExtractConfig
from pathsum.extraction.behaviour import SETTLED
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records.trajectories import TokenLossRow

TRAJECTORY_WINDOWS = 8  # some two thousand tokens: noise on single tokens then averages out of a component


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, _: ExtractConfig) -> dict[str, list[Any]]:
    """By record: each checkpoint from ``SETTLED`` on."""
    log, windows = trained.log, data.windows[:TRAJECTORY_WINDOWS]
    rows = []
    for path, at in zip(trained.checkpoints, log, strict=True):
        if at.tokens_seen >= SETTLED * log[-1].tokens_seen:
            logits = load_checkpoint(path, data.tokenizer_hash)(windows[:, :-1])
            losses = cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="none")
            rows.append(TokenLossRow(at.step, at.tokens_seen, losses.tolist()))
    return {"token_losses": rows}
