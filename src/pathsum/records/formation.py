"""Scores, losses and change-points at the checkpoints of training."""

from collections.abc import Sequence

from pathsum.records.evaluation import Evaluation
from pathsum.records.registry import record


@record(
    "formation",
    "as in heads and composition; key edge: preference − preference with the K-edge resampled",
    "extraction/formation.py",
)
class FormationRow:
    """Scores of the previous-token and induction heads at each checkpoint. See docs/framework.md §6.5."""

    step: int
    tokens_seen: int
    previous_token: float | None  # mean attention to the previous token, 0..1; None without heads
    k_composition: float | None  # score / chance − 1; None without an induction head past the first layer
    key_edge_nats: float | None  # preference lost when the K-edge is resampled; None as for k_composition
    prefix_matching: float | None  # 0..1; None without heads
    loss_drop_nats: float  # in-context loss drop of the model minus that of the bigram model on the same windows
    loss_drop_low: float | None  # 95 % bootstrap over documents; None for a single document
    loss_drop_high: float | None
    icl_loss_drop_nats: float | None  # docs/framework.md §6.2; None for short windows or without all verdict windows
    loss_nats: float
    windows: int  # of the loss drops: all verdict windows ``around_onset``, fewer elsewhere


@record("changes", "tokens seen at half of the rise; bend of the loss", "statistics/phase_change.py")
class ChangePointRow:
    """Change-point of each column of formation."""

    quantity: str  # name of the field
    tokens_seen: int
    low: int  # tokens seen at the evaluation before the change-point
    high: int  # tokens seen at the evaluation after it
    low_documents: int | None  # 95 % bootstrap over documents (random tokens: windows)
    high_documents: int | None  # both None for k_composition, one document, or too few draws with a change-point
    windows: int | None  # None for k_composition, which depends on the weights alone


def around_onset(log: Sequence[Evaluation]) -> tuple[int, int]:
    """Return the indices of the last evaluation before the phase change and of the first one after it, in the ``log``
    of a model with an onset (docs/framework.md §6.5)."""
    scores = [max(s for layer in e.prefix_matching for s in layer) for e in log]
    before = max((i for i, s in enumerate(scores) if s < 0.1 * scores[-1]), default=0)
    return before, 1 + max(i for i, s in enumerate(scores) if s < 0.9 * scores[-1])


@record("token_losses", "−log P(token)", "extraction/formation.py", printed=False)
class TokenLossRow:
    """Losses on single tokens at checkpoints. The tokens are the same for all models with one n_ctx."""

    step: int
    tokens_seen: int
    losses_nats: list[float]
