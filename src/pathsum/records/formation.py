"""Formation of heads and edges by checkpoint, and change points."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "formation",
    "what has formed by each checkpoint",
    "as heads and composition; key edge: preference with it − with another window's writes",
    "extraction/formation.py",
)
@dataclass(frozen=True)
class FormationRow:
    """The losses at one checkpoint, and the scores there of the two heads that end training as the previous-token head
    and the induction head."""

    step: int
    tokens_seen: int
    previous_token: float | None  # mean attention to the previous token, 0..1; None without heads
    k_composition: float | None  # score over chance, minus 1; None where the induction head is in the first layer
    key_edge_nats: float | None  # of its score, through the edge from the one to the keys of the other; likewise
    prefix_matching: float | None  # 0..1
    loss_drop_nats: float  # on the windows whose bootstrap gives the intervals: fewer than the log's
    loss_drop_low: float | None  # 95 % bootstrap over documents; None of a single document
    loss_drop_high: float | None
    icl_loss_drop_nats: float | None  # at ICL's positions, as in CellSummary
    loss_nats: float


@record("changes", "when each of these changes", "half of its rise; bend of the loss", "statistics/phase_change.py")
@dataclass(frozen=True)
class ChangePointRow:
    """The change point of a field of ``FormationRow``: half of its rise; of the loss the bend to a steeper slope."""

    quantity: str  # the field
    tokens_seen: int
    low: int  # the evaluations on either side
    high: int
    low_documents: (
        int | None
    )  # 95 % bootstrap over documents (of prefix matching, windows); None where the change depends on them
    high_documents: int | None
    windows: int | None  # None of composition, which is of the weights
