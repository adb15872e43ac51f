"""Claims of this suite: induction heads match more than the current token (docs/framework.md §5.12)."""

from pathsum.claims import samples
from pathsum.claims.formatting import interval, number
from pathsum.claims.judging import OWN, Claim, Finding, each, within
from pathsum.records.results import Cell
from pathsum.records.suffixes import CONTROLS_OF, Cut, SuffixCutRow

LEFT = 0.5  # ablation must leave less than this share of the advantage, but more than this share of one-token matching


def ablated(cell: Cell, cut: Cut) -> list[SuffixCutRow]:
    """Return suffix matching with the edges named ``cut`` ablated, one row per method."""
    return [r for r in cell.rows(SuffixCutRow) if r.cut == cut]


def _prefers_longer(cell: Cell) -> Finding:
    (row,) = ablated(cell, Cut.NONE)
    return Finding(row.advantage, row.low > 0, interval(row.advantage, row.low, row.high))


def _by_these_edges(cell: Cell) -> Finding:
    """Judge by the largest share of the advantage and the smallest share of one-token matching that are left, over both
    edges and both methods, and by each control."""
    found = [r for cut in CONTROLS_OF for r in ablated(cell, cut)]
    (row,) = ablated(cell, Cut.NONE)
    if row.low <= 0:
        return Finding(None, False, "no clear preference for the longer match")
    if len({r.cut for r in found}) < len(CONTROLS_OF):
        return Finding(None, False, "the first layer has no head but previous-token heads")
    left = [r.left_high for r in found if r.left_high is not None]
    kept = [r.alone_left_low for r in found if r.alone_left_low is not None]
    if min(len(left), len(kept)) < len(found):
        return Finding(None, False, "attention to a match is too low to take shares of it")
    controls = [r for some in CONTROLS_OF.values() for cut in some for r in ablated(cell, cut)]
    unsure = [within(LEFT, r.left_low, r.left_high) for r in found]
    unsure += [within(LEFT, r.alone_left_low, r.alone_left_high) for r in found]
    unsure += [within(0.0, r.spared_low, r.spared_high) for r in controls]
    failed = {
        "too much of the advantage may be left": max(left) >= LEFT,
        f"attention to a match of one token may fall to {number(min(kept))} of its value": min(kept) <= LEFT,
        "a control may leave no more of the advantage": any((r.spared_low or 0.0) <= 0 for r in controls),
    }
    reasons = [reason for reason, holds in failed.items() if holds]
    return Finding(max(left), not reasons, ", ".join(reasons), any(unsure))


def _measured(cell: Cell) -> bool:
    return bool(ablated(cell, Cut.NONE))


_SAMPLE = samples.over(lambda cell: [r.sequences for r in cell.rows(SuffixCutRow)], "sequences of random tokens")

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "two_token_matching",
        "Induction heads of two-layer models match more than the current token.",
        OWN,
        "attention of the induction head to what followed a match of two tokens minus that to what followed a match of "
        "the same current token alone, both in one sequence",
        "its 95 % interval is above 0",
        each(2, _prefers_longer, where=_measured),
        needs_induction_head=True,
        sample=_SAMPLE,
        unit="difference of mean attention",
    ),
    Claim(
        "two_token_edges",
        "Longer matches win because previous-token heads feed the queries, and heads that attend two tokens back feed "
        "the keys.",
        OWN,
        "largest share of that advantage (upper end of its interval) left once either edge is ablated (mean or "
        "resample ablation)",
        f"< {LEFT}, and less than without as many edges of heads outside the circuit (where there are as many) and "
        "with the same changes in random directions, by each of four rotations (paired 95 % intervals above 0), while "
        f"attention to a match of one token keeps more than {LEFT} of its value (lower end)",
        each(2, _by_these_edges, where=_measured),
        needs_induction_head=True,
        sample=_SAMPLE,
        unit="share of the longer match's advantage left, upper end of its interval",
    ),
)
