"""The claim that induction heads together carry most of in-context learning."""

from pathsum.claims import samples
from pathsum.claims.formatting import number
from pathsum.claims.judging import Claim, Finding, each, within
from pathsum.records.ablations import CONTRASTED, CONTROL, INDUCTION, JointAblationRow
from pathsum.records.results import Cell
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


def controls(cell: Cell) -> list[JointAblationRow]:
    """Return the ablations of at least as many other heads at the last checkpoint, by the methods of the claim, and
    writes of equal norm removed in random directions."""
    rows = at_the_end(cell)
    most = max((r.n_heads for r in rows if r.ablated == INDUCTION), default=0)
    others = [r for r in rows if (r.ablated != INDUCTION and r.method in CONTRASTED) or r.method == CONTROL]
    return [r for r in others if r.n_heads >= most]


def _controlled(cell: Cell) -> bool:
    """Return whether there is a control with as many other heads for each method, or nothing to control."""
    methods = {r.method for r in controls(cell) if r.ablated != INDUCTION}
    return methods.issuperset(CONTRASTED) or not ablations(cell)


def _joint(cell: Cell) -> Finding:
    ours, others = ablations(cell), controls(cell)
    shares = [r.share for r in ours if r.share is not None]
    if not shares:
        return Finding(None, False, "no clear loss drop" if ours else "no induction heads")
    share, worst = min(shares), max(r.loss_drop_lost for r in others)
    note = f"ablated: {', '.join(ours[0].heads.split())}; controls lose up to {number(worst)} nats of the drop"
    unsure = [within(MOST, r.share_low, r.share_high) for r in ours]
    unsure += [within(0.0, r.behind_low, r.behind_high) for r in others]
    return Finding(share, share >= MOST and all(r.behind_low > 0 for r in others), note, any(unsure))


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "joint_ablation",
        "Induction heads together carry most of the in-context learning of small attention-only models.",
        "ICL, Argument 3",
        "share of the in-context loss drop, minus that of the bigram model on the same windows, that is lost when all "
        f"heads with a prefix-matching score of at least {MATCHES} at the end of training are ablated together, the "
        "smaller of zero and resample ablation; in models whose layers have as many other heads",
        f"≥ {MOST}, and more than with other heads or random directions ablated (paired 95 % intervals above 0)",
        each(2, _joint, where=_controlled),
        needs_induction_head=True,
        sample=samples.over(lambda cell: [r.windows for r in at_the_end(cell)], "held-out windows"),
        unit="share of the in-context loss drop",
    ),
)
