"""Names that repeat within a window, with and without the K-edges of induction (docs/framework.md §5.16)."""

from pathsum.records.registry import record

NAME, ALL, CONTROL = "name", "all", "control"  # kinds of rows


@record(
    "repeated_names",
    "loss without the K-edges − loss, over tokens past the first of names",
    "extraction/repeated_names.py",
)
class RepeatedNameRow:
    """Loss on names that repeat within a window, with and without the K-edges of induction (docs/framework.md §5.16).
    Intervals: 95 % bootstrap over documents, None for a single name."""

    kind: str  # name: those of largest total cost | all: together | control: new pairs at all first occurrences
    method: str  # replacement of the previous-token heads' writes: zero | resample
    name: str  # its parts by token, joined by "␟"; "" for all names together
    windows: int  # in which they repeat
    occurrences: int  # later ones in a window; of the control, first ones
    tokens: int  # in these occurrences, past the first of each
    first_nats: float  # mean loss of tokens past the first at first occurrences; of the control, loss_nats
    loss_nats: float  # mean loss of ``tokens``
    cut_nats: float  # the same without the K-edges
    cost_nats: float  # cut_nats − loss_nats
    cost_low: float | None
    cost_high: float | None
