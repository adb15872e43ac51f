"""Claims of this suite: induction heads match more than the current token (docs/framework.md §5.12)."""

from __future__ import annotations

from collections.abc import Callable

from pathsum.claims import samples
from pathsum.claims.formatting import interval, number
from pathsum.claims.judging import OWN, Claim, Finding, within
from pathsum.records.results import Cell, Results
from pathsum.records.suffixes import CONTROLS_OF, Condition, Cut, SuffixCutRow, SuffixMatchRow

LEFT = 0.5  # ablation must leave less than this share of the advantage, but more than this share of one-token matching


def uncut(cell: Cell) -> SuffixCutRow | None:
    """Return the suffix matching of the induction head without ablation. None if it was not measured."""
    return next((r for r in cell.rows(SuffixCutRow) if r.cut == Cut.NONE), None)


def ablated(cell: Cell, cut: Cut) -> list[SuffixCutRow]:
    """Return suffix matching with the edges named ``cut`` ablated, one row per method."""
    return [r for r in cell.rows(SuffixCutRow) if r.cut == cut]


def of_induction_head(cell: Cell, condition: Condition) -> SuffixMatchRow | None:
    """Return the attention of the induction head under ``condition``, or None."""
    place = (head.layer, head.head) if (head := uncut(cell)) else None
    rows = [r for r in cell.rows(SuffixMatchRow) if (r.layer, r.head) == place and r.condition == condition]
    return next(iter(rows), None)


def _two_layers(find: Callable[[Cell, SuffixCutRow], Finding]) -> Callable[[Results], dict[str, Finding]]:
    def evaluate(results: Results) -> dict[str, Finding]:
        return {c.name: find(c, row) for c in results.with_layers(2) if (row := uncut(c)) is not None}

    return evaluate


def _prefers_longer(_: Cell, row: SuffixCutRow) -> Finding:
    return Finding(row.advantage, row.low > 0, interval(row.advantage, row.low, row.high))


def _by_these_edges(cell: Cell, row: SuffixCutRow) -> Finding:
    """Judge by the largest share of the advantage and the smallest share of one-token matching that are left, over both
    edges and both methods, and by each control."""
    found = [r for cut in CONTROLS_OF for r in ablated(cell, cut)]
    if row.low <= 0:
        return Finding(None, False, "no clear preference for the longer match")
    if len({r.cut for r in found}) < len(CONTROLS_OF):
        return Finding(None, False, "the first layer has no head but previous-token heads")
    left = [r.left_high for r in found if r.left_high is not None]
    kept = [r.alone_left_low for r in found if r.alone_left_low is not None]
    if min(len(left), len(kept)) < len(found):
        return Finding(None, False, "attention to a match is too low to take shares of it")
    controls = [r for some in CONTROLS_OF.values() for cut in some for r in ablated(cell, cut)]
    beaten = all(r.spared_low is not None and r.spared_low > 0 for r in controls)
    unsure = any(
        within(LEFT, r.left_low, r.left_high) or within(LEFT, r.alone_left_low, r.alone_left_high) for r in found
    ) or any(within(0.0, r.spared_low, r.spared_high) for r in controls)
    reasons: list[str] = []
    if max(left) >= LEFT:
        reasons.append("too much of the advantage may be left")
    if min(kept) <= LEFT:
        reasons.append(f"attention to a match of one token may fall to {number(min(kept))} of its value")
    if not beaten:
        reasons.append("a control may leave no more of the advantage")
    return Finding(max(left), max(left) < LEFT < min(kept) and beaten, ", ".join(reasons), unsure)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "two_token_matching",
        "Induction heads of two-layer models match more than the current token.",
        OWN,
        "attention of the induction head to what followed a match of two tokens minus that to what followed a match of "
        "the same current token alone, both in one sequence",
        "its 95 % interval is above 0",
        _two_layers(_prefers_longer),
        needs_induction_head=True,
        sample=samples.over(lambda cell: [r.sequences for r in cell.rows(SuffixCutRow)], "sequences of random tokens"),
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
        _two_layers(_by_these_edges),
        needs_induction_head=True,
        sample=samples.over(lambda cell: [r.sequences for r in cell.rows(SuffixCutRow)], "sequences of random tokens"),
        unit="share of the longer match's advantage left, upper end of its interval",
    ),
)
