"""Losses of single tokens at each checkpoint."""

from pathsum.records.registry import record


@record(
    "token_losses", "losses of single tokens at checkpoints", "−log P(token)", "extraction/formation.py", printed=False
)
class TokenLossRow:
    """A checkpoint's loss on single held-out tokens: the same tokens for every model with the same context."""

    step: int
    tokens_seen: int
    losses_nats: list[float]
