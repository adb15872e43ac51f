"""Claims about in-context learning and the phase change in which induction heads form (docs/framework.md §6)."""

from pathsum.claims import samples
from pathsum.claims.formatting import number
from pathsum.claims.judging import Claim, Finding, each, within
from pathsum.records.formation import FormationRow, around_onset
from pathsum.records.results import Cell, Results

GAP = 0.2  # nats; least difference of the loss drop between two layers and one
BEFORE, AFTER = 0.15, 0.3  # nats; the loss drop must be below BEFORE before the phase change and above AFTER after it


def _loss_drop_gap(results: Results) -> dict[str, Finding]:
    one = max((c.summary for c in results.of_depth(1)), key=lambda s: s.in_context_loss_drop_nats, default=None)
    if one is None:
        return {}
    found = {}
    for two in (c.summary for c in results.of_depth(2)):
        gap = two.in_context_loss_drop_nats - one.in_context_loss_drop_nats
        ends = [(s.in_context_loss_drop_low, s.in_context_loss_drop_high) for s in (one, two)]
        (low, high), (two_low, two_high) = ends
        known = None not in (low, high, two_low, two_high)
        unsure = known and low + GAP <= two_high and two_low <= high + GAP  # type: ignore[operator]
        found[two.cell] = Finding(gap, gap >= GAP, unsure=unsure)
    return found


def _onset_only_with_two(results: Results) -> dict[str, Finding]:
    one = results.of_depth(1)
    early = [c.name for c in one if c.summary.onset_tokens is not None]

    def find(cell: Cell) -> Finding:
        tokens = cell.summary.onset_tokens
        if tokens is None:
            return Finding(None, False, spoilt or "no onset")
        return Finding(float(tokens), not early, spoilt)

    spoilt = f"an onset with one layer in {', '.join(early)}" if early else ""
    return each(2, find, where=Cell.has_curve)(results) if one else {}


def formed_across_onset(cell: Cell) -> tuple[FormationRow, FormationRow] | None:
    """Return the rows of the record ``formation`` (verdict documents) at the evaluations ``around_onset``."""
    if cell.summary.onset_tokens is None:
        return None
    rows = {f.step: f for f in cell.rows(FormationRow)}
    before, after = (rows.get(cell.log[i].step) for i in around_onset(cell.log))
    return (before, after) if before and after else None


def icl_loss_drop_before_onset(cell: Cell) -> float | None:
    """Return the loss drop at ICL's positions (docs/framework.md §6.2) before the phase change, in nats per token."""
    around = formed_across_onset(cell)
    return around[0].icl_loss_drop_nats if around else None


def _coincides(cell: Cell) -> Finding:
    around = formed_across_onset(cell)
    if around is None:
        unrecorded = "an onset, but no record of the evaluations around it"
        return Finding(None, False, "no onset" if cell.summary.onset_tokens is None else unrecorded)
    before, after = (f.loss_drop_nats for f in around)
    bounds = zip((BEFORE, AFTER), around, strict=True)
    unsure = any(within(bound, f.loss_drop_low, f.loss_drop_high) for bound, f in bounds)
    note = f"{number(before)} before, {number(after)} after"
    return Finding(after - before, before < BEFORE and after > AFTER, note, unsure)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "loss_drop_gap",
        "Two layers learn more from context than one.",
        "ICL, Argument 1",
        "in-context loss drop minus the largest of the one-layer cells (nats)",
        f"≥ {GAP} nats",
        _loss_drop_gap,
        chance=lambda _: "0 (the best one-layer model)",
        sample=samples.held_out,
        unit="nats per token",
    ),
    Claim(
        "phase_change_two_layer",
        "Induction appears in a phase change, with two layers and not with one.",
        "ICL, Argument 1",
        "tokens seen at the onset",
        "an onset in each two-layer cell, none in a one-layer cell",
        _onset_only_with_two,
        digits=0,
        papers="1–3 B tokens, larger models",
        sample=samples.EVALUATIONS,
        unit="tokens seen",
    ),
    Claim(
        "phase_change_coincides",
        "In-context learning appears at the phase change.",
        "ICL, Argument 1",
        "rise of the loss drop, minus that of the bigram model on the same windows, while prefix matching goes from a "
        "tenth to nine tenths of its last value (nats)",
        f"< {BEFORE} nats before, > {AFTER} after",
        each(2, _coincides, where=Cell.has_curve),
        needs_induction_head=True,
        chance=lambda _: "0",
        papers="from < 0.15 to ≈ 0.4, at other positions",
        sample=samples.over(
            lambda cell: [r.windows for r in formed_across_onset(cell) or cell.rows(FormationRow)[-1:]],
            "held-out windows",
        ),
        unit="nats per token, rise of the loss drop (the thresholds are for the drop itself)",
    ),
)
