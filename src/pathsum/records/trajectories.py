"""Losses on fixed single tokens at each checkpoint (docs/framework.md §6.6)."""

from pathsum.records.registry import record


@record(
    "token_losses", "losses on single tokens at checkpoints", "−log P(token)", "extraction/formation.py", printed=False
)
class TokenLossRow:
    """The losses on single held-out tokens at one checkpoint. Models with the same n_ctx are evaluated on the same
    tokens."""

    step: int
    tokens_seen: int
    losses_nats: list[float]
