"""Losses of single tokens at each checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "token_losses", "losses of single tokens at checkpoints", "−log P(token)", "extraction/behaviour.py", printed=False
)
@dataclass(frozen=True)
class TokenLossRow:
    """A checkpoint's loss on single held-out tokens: the same tokens for every model with the same context."""

    step: int
    tokens_seen: int
    losses_nats: list[float]
