"""Formation of heads and edges over training, and change points."""

from pathsum.records.registry import record


@record(
    "formation",
    "scores of the previous-token and induction heads at each checkpoint",
    "as heads and composition; key edge: preference − preference with another window's writes",
    "extraction/formation.py",
)
class FormationRow:
    """The losses at one checkpoint, and the scores of the heads that are the previous-token head and the induction head
    at the end of training."""

    step: int
    tokens_seen: int
    previous_token: float | None  # mean attention to the previous token, 0..1; None without heads
    k_composition: float | None  # score over chance, minus 1; None if the induction head is in the first layer
    key_edge_nats: float | None  # preference of the induction head that comes through the K-edge; None as above
    prefix_matching: float | None  # 0..1
    loss_drop_nats: float  # on fewer windows than the log's
    loss_drop_low: float | None  # 95 % bootstrap over documents; None for a single document
    loss_drop_high: float | None
    icl_loss_drop_nats: float | None  # at ICL's positions, as in CellSummary
    loss_nats: float


@record("changes", "change point of each of these", "half of its rise; bend of the loss", "statistics/phase_change.py")
class ChangePointRow:
    """The change point of a field of ``FormationRow``: half of its rise, or the bend of the loss to a steeper slope."""

    quantity: str  # the field
    tokens_seen: int
    low: int  # the evaluations on either side
    high: int
    low_documents: int | None  # 95 % bootstrap over documents (random tokens: windows); None if some draws lack it
    high_documents: int | None
    windows: int | None  # None for composition, which depends on the weights alone
