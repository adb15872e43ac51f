"""The exactness check of the path expansion."""

from __future__ import annotations

from pathsum.records.exactness import ExactnessRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import MODEL, Column, Section, Table, Text
from pathsum.report.theme import Figures, Theme

TITLE = "Why to trust it"


def section(results: Results, _: Figures) -> Section:
    """Show the largest error of the path sums of every model."""
    table = Table.of(
        results.cells.values(),
        MODEL,
        Column("checkpoints", lambda c: len(c.rows(ExactnessRow))),
        Column("largest relative error, logits", lambda c: _worst(c, "max_relative_error")),
        Column("scores", lambda c: _worst(c, "scores_max_relative_error")),
        Text("weights", lambda c: c.summary.weights_hash[:12], kind="token"),
        caption="Exactness of the path expansion, float64: of logits over paths, of attention scores over pairs.",
        csv="exactness.csv",
    )
    if not results.cells:
        return Section(TITLE, ())
    worst = max(c.summary.exactness for c in results.cells.values())
    text = (
        "With attention patterns and norm scales fixed, the sum over all paths is the logits, and the sum over pairs "
        "of paths the attention scores of every later head: the largest relative error over all checkpoints of all "
        f"models, in float64, is {worst:.1e}. Tables over tokens read each embedding at its own scale, which is exact "
        "without a norm or without layers, and an approximation elsewhere."
    )
    return Section(TITLE, (text,), (table,))


def _worst(cell: Cell, field: str) -> str:
    errors = [e for r in cell.rows(ExactnessRow) if (e := getattr(r, field)) is not None]
    return f"{max(errors):.1e}" if errors else "–"


THEME = Theme(TITLE, section, opens_part=True, tables=("exactness",))
