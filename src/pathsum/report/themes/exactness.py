"""The certificate of the path expansion."""

from __future__ import annotations

from pathsum.records.exactness import ExactnessRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import Entry, Section, Table
from pathsum.report.theme import Figures, Theme

TITLE = "Why to trust it"


def section(results: Results, _: Figures) -> Section:
    """The largest error of the path sums of every model."""
    return Section(TITLE, _text(results), _table(results))


def _text(results: Results) -> tuple[str, ...]:
    if not results.cells:
        return ()
    worst = max(c.summary.exactness for c in results.cells.values())
    return (
        "With attention patterns and norm scales fixed, the sum over all paths is the logits, and the sum over pairs "
        "of paths the attention scores of every later head: the largest relative error over all checkpoints of all "
        f"models, in float64, is {worst:.1e}. Tables over tokens read each embedding at its own scale, which is exact "
        "without a norm or without layers, and an approximation elsewhere.",
    )


def _table(results: Results) -> tuple[Table, ...]:
    """The exactness certificate of every model."""
    fields = tuple(
        (
            Entry(c.name),
            Entry(str(len(c.rows(ExactnessRow))), "number"),
            *(Entry(e, "number") for e in _errors(c)),
            Entry(c.summary.weights_hash[:12], "token"),
        )
        for c in results.cells.values()
    )
    if not fields:
        return ()
    columns = ("cell", "checkpoints", "largest relative error, logits", "scores", "weights")
    return (
        Table(
            "Exactness of the path expansion, float64: of logits over paths, of attention scores over pairs.",
            columns,
            fields,
            "exactness.csv",
        ),
    )


def _errors(cell: Cell) -> tuple[str, str]:
    scores = [e.scores_max_relative_error for e in cell.rows(ExactnessRow) if e.scores_max_relative_error is not None]
    return f"{max(e.max_relative_error for e in cell.rows(ExactnessRow)):.1e}", f"{max(scores):.1e}" if scores else "–"


THEME = Theme(TITLE, section, opens_part=True, tables=("exactness",))
