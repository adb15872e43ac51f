"""The in-context loss drop at the positions of the induction-heads paper (ICL "in-context learning score")."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.probes.in_context import NEIGHBOURS

EARLY, LATE = 50, 500  # ICL's tokens


def icl_positions(n: int) -> tuple[int, int] | None:
    """Return ICL's 50th and 500th token. In shorter windows of ``n`` predictions, the late token is the last multiple
    of 10 with NEIGHBOURS after it, such as the 250th of 256. None if the two ends would overlap."""
    late = min(LATE, (n - NEIGHBOURS) // 10 * 10)
    return (EARLY, late) if late - NEIGHBOURS > EARLY + NEIGHBOURS else None


def icl_loss_drop(loss_by_position: Sequence[float]) -> float | None:
    """Subtract the loss around the late token of ``icl_positions`` from that around the 50th, in nats; positive if the
    model learns from context. In windows of 256 tokens: 50 ± 5 against 250 ± 5.

    Entry i is the mean loss of predicting the token at i + 1. None if the window is too short."""
    at = icl_positions(len(loss_by_position))
    if at is None:
        return None
    early, late = (loss_by_position[p - 1 - NEIGHBOURS : p + NEIGHBOURS] for p in at)
    return sum(early) / len(early) - sum(late) / len(late)
