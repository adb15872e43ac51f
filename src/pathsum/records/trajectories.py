"""Losses on fixed single tokens at each settled checkpoint (docs/framework.md §6.5, §6.6)."""

from pathsum.records.registry import record


@record(
    "token_losses", "losses on single tokens at checkpoints", "−log P(token)", "extraction/formation.py", printed=False
)
class TokenLossRow:
    """The losses on single held-out tokens at one checkpoint. The tokens are the same for all models with the same
    n_ctx."""

    step: int
    tokens_seen: int
    losses_nats: list[float]
