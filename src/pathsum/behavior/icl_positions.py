"""The in-context loss drop at the token positions of In-context Learning and Induction Heads (ICL),
docs/framework.md §6.2.
"""

from collections.abc import Sequence

from pathsum.behavior.in_context import NEIGHBOURS

EARLY, LATE = 50, 500  # tokens whose losses ICL compares


def icl_positions(n: int) -> tuple[int, int] | None:
    """Return the early and the late token whose losses are compared: the 50th and the 500th, as in ICL.

    If windows of ``n`` predictions are too short for the 500th, the late token is the last multiple of 10 with
    NEIGHBOURS (5) predictions after it, such as the 250th of 256. None if the ranges of 5 tokens on either side of the
    two tokens would overlap (n < 75)."""
    late = min(LATE, (n - NEIGHBOURS) // 10 * 10)
    return (EARLY, late) if late - NEIGHBOURS > EARLY + NEIGHBOURS else None


def icl_loss_drop(loss_by_position: Sequence[float]) -> float | None:
    """Return the mean loss around the 50th token minus that around the late token of ``icl_positions``, in nats.

    The difference is positive if the model learns from context (docs/framework.md §6.2). In windows of 256 tokens, it
    compares tokens 45 to 55 with tokens 245 to 255. Entry i of ``loss_by_position`` is the mean loss of predicting
    token i + 1. None if the window is too short (``icl_positions``).
    """
    at = icl_positions(len(loss_by_position))
    if at is None:
        return None
    early, late = (loss_by_position[p - 1 - NEIGHBOURS : p + NEIGHBOURS] for p in at)
    return sum(early) / len(early) - sum(late) / len(late)
