"""The claim that the induction circuit suffices without the rest of the model (docs/framework.md §5.10)."""

from __future__ import annotations

from pathsum.claims import samples
from pathsum.claims.formatting import number
from pathsum.claims.judging import Claim, Finding, each
from pathsum.records.results import Cell
from pathsum.records.sufficiency import SufficiencyRow

MOST = 0.5  # least share of the prefix matching that must remain


def kept(cell: Cell) -> SufficiencyRow | None:
    """Return the row that keeps only the edge from the previous-token head to the induction head's keys, or None."""
    return next((r for r in cell.rows(SufficiencyRow) if r.kept == "circuit"), None)


def best_control(cell: Cell) -> SufficiencyRow | None:
    """Return the control with the highest upper end of the interval of prefix matching, or None.

    A control keeps the edge of another first-layer head, or no edge.
    """
    controls = [r for r in cell.rows(SufficiencyRow) if r.kept != "circuit"]
    return max(controls, key=lambda r: r.matching_high, default=None)


def _suffices(cell: Cell) -> Finding:
    ours, other = kept(cell), best_control(cell)
    if ours is None or other is None:
        return Finding(None, False, "no induction head past the first layer")
    clear = ours.matching_low > other.matching_high
    passes = ours.matching_share >= MOST and clear
    note = f"best control {number(other.matching_share)}"
    note += "" if clear else ", not clearly lower"
    return Finding(ours.matching_share, passes, note)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "circuit_suffices",
        "Keys that read a previous-token head make a later head an induction head.",
        "AMF, How Induction Heads Work",
        "share of the induction head's prefix matching that remains when all other heads, and all else that its keys "
        "and queries read of heads, are resampled, queries and keys from different windows",
        f"≥ {MOST}, its interval above that of any other first-layer head in the same place",
        each(2, _suffices),
        needs_induction_head=True,
        sample=samples.over(
            lambda cell: [r.windows for r in cell.rows(SufficiencyRow)], "windows of repeated random tokens"
        ),
        unit="share of prefix matching",
    ),
)
