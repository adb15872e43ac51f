"""Sufficiency of previous-token head, key edge and induction head."""

from __future__ import annotations

from pathsum.claims.formatting import head_label
from pathsum.claims.sufficiency import best_control, kept
from pathsum.records.results import Cell, Results
from pathsum.records.sufficiency import SufficiencyRow
from pathsum.report.document import MODEL, Column, Section, Table, Text
from pathsum.report.theme import Figures, Theme

TITLE = "The induction circuit alone"


def section(results: Results, _: Figures) -> Section:
    """Show the share that remains when everything but the circuit is resampled."""
    cells = [c for c in results.with_layers(2) if c.rows(SufficiencyRow)]
    if not cells:
        return Section(TITLE, ("No two-layer model of this sweep has an induction head past the first layer.",))
    method = (
        "A necessary circuit need not be sufficient. Here everything but the circuit is resampled: what all other "
        "heads write, and all else that the induction head's keys and queries read of earlier heads. Queries and keys "
        "are resampled from different windows. The token embedding is kept: queries match it and values copy it. "
        "Controls keep the edge of another first-layer head, or no edge."
    )
    return Section(TITLE, (method,), (_table(cells),))


def _table(cells: list[Cell]) -> Table:
    return Table.of(
        [(c, r) for c in cells for r in (kept(c), best_control(c)) if r is not None],
        MODEL,
        Text("kept", lambda _, r: _edge(r)),
        Column("prefix matching left (share)", ("matching_share", "matching_low", "matching_high")),
        Column("second-copy gain left (share)", ("gain_share", "gain_low", "gain_high")),
        caption="The previous-token head, its key edge and the induction head keep this share of the whole model's "
        "prefix matching and second-copy gain; below it, the control that keeps most. 95 % intervals over windows of "
        "repeated random tokens.",
        csv="sufficiency.csv",
    )


def _edge(r: SufficiencyRow) -> str:
    late = head_label(r.layer, r.head)
    edge = f"no edge, {late} (control)" if r.early_head is None else f"{head_label(0, r.early_head)} → {late} (K)"
    return edge + " (control)" * (r.kept == "another head")


THEME = Theme(TITLE, section, tables=("sufficiency",))
