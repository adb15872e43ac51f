"""Whether previous-token head, key edge and induction head suffice."""

from __future__ import annotations

from pathsum.claims.formatting import head_label, interval
from pathsum.claims.sufficiency import best_control, kept
from pathsum.records.results import Cell, Results
from pathsum.records.sufficiency import SufficiencyRow
from pathsum.report.document import Entry, Section, Table
from pathsum.report.theme import Figures, Theme

TITLE = "The induction circuit alone"


def section(results: Results, _: Figures) -> Section:
    """What remains when everything but the circuit is resampled."""
    cells = [c for c in results.with_layers(2) if c.rows(SufficiencyRow)]
    if not cells:
        return Section(TITLE, ("No two-layer model of this sweep has an induction head past the first layer.",), ())
    method = (
        "Necessity is not sufficiency. Here everything but the circuit is resampled: what all other heads write, and "
        "all that the induction head's keys read besides the previous-token head, come from another window. The token "
        "itself stays: it is what queries match and values copy. Controls keep the edge of another first-layer head, "
        "or none."
    )
    return Section(TITLE, (method,), (_table(cells),))


def _table(cells: list[Cell]) -> Table:
    columns = ("model", "kept", "prefix matching left (share)", "second-copy gain left (share)")
    rows = tuple(_row(c, r) for c in cells for r in (kept(c), best_control(c)) if r is not None)
    caption = (
        "The previous-token head, its key edge and the induction head keep this share of the whole model's prefix "
        "matching and second-copy gain; below it, the control that keeps most. 95 % intervals over windows of repeated "
        "random tokens."
    )
    return Table(caption, columns, rows, "sufficiency.csv")


def _row(cell: Cell, r: SufficiencyRow) -> tuple[Entry, ...]:
    late = head_label(r.layer, r.head)
    edge = f"no edge, {late} (control)" if r.early_head is None else f"{head_label(0, r.early_head)} → {late} (K)"
    return (
        Entry(cell.name),
        Entry(edge + " (control)" * (r.kept == "another head")),
        Entry(interval(r.matching_share, r.matching_low, r.matching_high), "number"),
        Entry(interval(r.gain_share, r.gain_low, r.gain_high), "number"),
    )


THEME = Theme(TITLE, section, tables=("sufficiency",))
