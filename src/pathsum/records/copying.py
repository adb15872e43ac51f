"""Copying on text, beside the eigenvalues of the weights (docs/framework.md §3.18)."""

from pathsum.records.registry import record

SPREADS = 2  # standard deviations of the random-rotation null that a copying head must exceed


@record(
    "copying",
    "how much each head raises the tokens that it attends to, and the loss without its OV diagonal",
    "o · (u − u'), u = Σ A W_U[t]; rise of the loss if A OV[t, t] is taken from the logit of each attended t",
    "extraction/copying.py",
)
class CopyingRow:
    """Copying by one head on held-out text. Intervals: 95 % bootstrap over documents."""

    layer: int
    head: int
    attended_nats: float  # logit of the attended tokens, by the head's output, minus that of another window's
    attended_low: float
    attended_high: float
    spread_nats: float  # standard deviation of attended_nats under random rotations, where its mean is 0
    removal_nats: float  # rise of the loss if each attended token loses what the head's own OV entry adds to it
    removal_low: float
    removal_high: float
    windows: int

    @property
    def bar(self) -> float:
        """Return what the lower end of ``attended_nats`` must exceed."""
        return SPREADS * self.spread_nats

    @property
    def copies(self) -> bool:
        """Return whether the head copies by its behavior on text."""
        return self.attended_low > self.bar
