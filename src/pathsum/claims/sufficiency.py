"""Claims of this suite: the induction circuit suffices without the rest of the model (docs/framework.md §5.10)."""

from pathsum.claims import samples
from pathsum.claims.formatting import number
from pathsum.claims.judging import OWN, Claim, Finding, each, within
from pathsum.records.results import Cell
from pathsum.records.sufficiency import Kept, SufficiencyRow

MOST = 0.5  # least share of the prefix matching, and of the gain, that must remain
CONTROLS = (Kept.NO_PREVIOUS, Kept.OTHERS)  # without previous-token heads
MINIMAL_CONTROLS = (Kept.ANOTHER, Kept.NOTHING)


def rows(cell: Cell, *kept: Kept) -> list[SufficiencyRow]:
    """Return the rows of a model that keep one of ``kept``, in the order of the record."""
    return [r for r in cell.rows(SufficiencyRow) if r.kept in kept]


def _resamples(cell: Cell) -> bool:
    """Return whether the first layer has heads outside the circuit."""
    return all(len(r.heads.split()) < cell.summary.n_heads for r in rows(cell, Kept.CIRCUIT))


def _suffices(cell: Cell) -> Finding:
    return _judged(rows(cell, Kept.CIRCUIT), rows(cell, *CONTROLS))


def _minimal_suffices(cell: Cell) -> Finding:
    previous = {head for r in rows(cell, Kept.KEYS) for head in r.heads.split()}
    controls = [r for r in rows(cell, *MINIMAL_CONTROLS) if r.heads not in previous]
    return _judged(rows(cell, Kept.MINIMAL), controls)


def _judged(kept: list[SufficiencyRow], controls: list[SufficiencyRow]) -> Finding:
    """Judge by the share of prefix matching and, where it was measured, of the gain, against the control with the
    highest upper end. No value if a share is missing, because the whole model matches too little."""
    if not kept or not controls:
        return Finding(None, False, "no induction head past the first layer")
    known = [
        (r.matching_share, r.matching_low, r.matching_high)
        for r in (*kept, *controls)
        if r.matching_share is not None and r.matching_low is not None and r.matching_high is not None
    ]
    if len(known) < len(kept) + len(controls):
        return Finding(None, False, "too little matching")
    (share, low, high), (control, _, highest) = known[0], max(known[1:], key=lambda one: one[2])
    (ours,), clear = kept, low > highest
    gains = ours.repeat_gain_nats is None or (ours.gain_share is not None and ours.gain_share >= MOST)
    reasons = [f"best control {number(control)}{'' if clear else ', not clearly lower'}"]
    reasons += [] if gains else [f"gain {number(ours.gain_share)}"]
    unsure = within(MOST, low, high) or within(MOST, ours.gain_low, ours.gain_high)
    return Finding(share, share >= MOST and gains and clear, ", ".join(reasons), unsure)


_SAMPLE = samples.over(lambda cell: [r.windows for r in cell.rows(SufficiencyRow)], "windows of repeated random tokens")

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "circuit_suffices",
        "Previous-token heads, heads that attend two tokens back and induction heads suffice for induction.",
        OWN,
        "share of the induction head's prefix matching that remains when every head but the previous-token heads, the "
        "heads that attend two tokens back and the induction heads is resampled everywhere, while norms respond; in "
        "models whose first layer has other heads",
        f"≥ {MOST}, and so is the share of the gain on the second copy; its interval is above those of both controls: "
        "the circuit without the previous-token heads, and the other first-layer heads in their place",
        each(2, _suffices, where=_resamples),
        needs_induction_head=True,
        sample=_SAMPLE,
        unit="share of prefix matching",
    ),
    Claim(
        "minimal_circuit_suffices",
        "Keys that read one previous-token head make a later head an induction head.",
        OWN,
        "share of the induction head's prefix matching that remains when all other heads, and all else that its keys "
        "and queries read of heads, are resampled, queries and keys from different windows",
        f"≥ {MOST}, its interval above that of any first-layer head that is no previous-token head, in the same place",
        each(2, _minimal_suffices),
        needs_induction_head=True,
        sample=_SAMPLE,
        unit="share of prefix matching",
    ),
)
