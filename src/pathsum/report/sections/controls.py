"""Controls: cells beside the grid in which induction must form, or must not."""

from __future__ import annotations

from collections.abc import Mapping

from pathsum.report.claims.controls import FORMED, NOT_FORMED
from pathsum.report.document import Entry, Section, Table
from pathsum.report.figures import Figure
from pathsum.report.symbols import millions, number
from pathsum.results import Cell, Results

TITLE = "Controls"


def section(results: Results, figures: Mapping[str, Figure]) -> Section:
    """What the controls are, and whether each came out as it must."""
    if not results.controls:
        return Section(TITLE, ("This sweep has no controls.",), ())
    text = (
        "A measurement that cannot fail shows nothing. One layer with smeared keys, which mix in the key before, can "
        "do induction without a previous-token head. Two layers trained on shuffled windows have nothing to match, and "
        "untrained weights have learnt nothing."
    )
    drawn = (figures["controls"],) if "controls" in figures else ()
    columns = ("control", "layers", "expected", "prefix matching", "previous token", "loss drop (nats)", "tokens", "")
    rows = tuple(_row(c) for c in results.controls.values())
    table = Table("Each control against what it must show.", columns, rows, "controls.csv")
    return Section(TITLE, (text,), (*drawn, table))


def _row(cell: Cell) -> tuple[Entry, ...]:
    s = cell.summary
    found = s.prefix_matching or 0.0
    ok = found >= FORMED if s.smeared_keys else found <= NOT_FORMED
    expected = f"≥ {FORMED}" if s.smeared_keys else f"≤ {NOT_FORMED}"
    return (
        Entry(s.cell),
        Entry(str(s.n_layers), "number"),
        Entry(f"prefix matching {expected}"),
        Entry(number(s.prefix_matching, 3), "number"),
        Entry(number(s.previous_token), "number"),
        Entry(number(s.in_context_loss_drop_nats), "number"),
        Entry(millions(s.tokens_seen), "number"),
        Entry("as expected" if ok else "not as expected"),
    )
