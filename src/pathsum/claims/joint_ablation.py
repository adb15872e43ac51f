"""The claim that induction heads together carry most of in-context learning."""

from __future__ import annotations

from pathsum.claims import samples
from pathsum.claims.formatting import number
from pathsum.claims.judging import Claim, Finding, within
from pathsum.records.ablations import CONTRASTED, CONTROL, INDUCTION, JointAblationRow
from pathsum.records.results import Cell, Results
from pathsum.records.roles import MATCHES

MOST = 0.5  # least share of the loss drop that must be lost


def at_the_end(cell: Cell) -> list[JointAblationRow]:
    """Return the rows of the last checkpoint: one per set of ablated heads and ablation method or random rotation."""
    rows = cell.rows(JointAblationRow)
    last = max((r.step for r in rows), default=0)
    return [r for r in rows if r.step == last]


def ablations(cell: Cell) -> list[JointAblationRow]:
    """Return the ablations of all induction heads at the last checkpoint, one row per method of the claim."""
    return [r for r in at_the_end(cell) if r.ablated == INDUCTION and r.method in CONTRASTED]


def controls(rows: list[JointAblationRow]) -> list[JointAblationRow]:
    """Return the controls: ablations of other heads, and writes of equal norm removed in random directions."""
    return [r for r in rows if r.ablated != INDUCTION or r.method == CONTROL]


def as_many(rows: list[JointAblationRow]) -> list[JointAblationRow]:
    """Return the controls with at least as many heads as there are induction heads."""
    most = max((r.n_heads for r in rows if r.ablated == INDUCTION), default=0)
    return [r for r in controls(rows) if r.n_heads >= most]


def controlled(cell: Cell) -> bool:
    """Return whether there is a control with as many other heads for each method."""
    others = {r.method for r in as_many(at_the_end(cell)) if r.ablated != INDUCTION}
    return others.issuperset(CONTRASTED)


def undecided(cell: Cell) -> bool:
    """Return whether half lies within the 95 % interval of the share of the loss drop that zero or resample ablation of
    the induction heads removes."""
    return any(within(MOST, r.share_low, r.share_high) for r in ablations(cell))


def _together(results: Results) -> dict[str, Finding]:
    return {c.name: _joint(c) for c in results.with_layers(2) if controlled(c) or not ablations(c)}


def _joint(cell: Cell) -> Finding:
    rows, ours = at_the_end(cell), ablations(cell)
    shares = [r.share for r in ours if r.share is not None]
    if not shares:
        return Finding(None, False, "no clear loss drop" if ours else "no induction heads")
    share, others = min(shares), [r for r in as_many(rows) if r.method in (*CONTRASTED, CONTROL)]
    worst = max(r.loss_drop_lost for r in others)
    note = f"ablated: {', '.join(ours[0].heads.split())}; controls lose up to {number(worst)} nats of the drop"
    unsure = any(within(0.0, r.behind_low, r.behind_high) for r in others) or undecided(cell)
    return Finding(share, share >= MOST and all(r.behind_low > 0 for r in others), note, unsure)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "joint_ablation",
        "Induction heads together carry most of the in-context learning of small attention-only models.",
        "ICL, Argument 3",
        "share of the in-context loss drop, minus that of the bigram model on the same windows, that is lost when all "
        f"heads with a prefix-matching score of at least {MATCHES} at the end of training are ablated together, the "
        "smaller of zero and resample ablation; in models whose layers have as many other heads",
        f"≥ {MOST}, and more than with other heads or random directions ablated (paired 95 % intervals above 0)",
        _together,
        needs_induction_head=True,
        sample=samples.over(lambda cell: [r.windows for r in at_the_end(cell)], "held-out windows"),
        unit="share of the in-context loss drop",
    ),
)
